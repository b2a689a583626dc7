"""FlexiBERT (Tuli et al., 2022): encoders whose layers differ in operation, width, heads and feed-forward stack.

Three levels: stacks of two equal layers (`s2`), free layers (`s1`), and free feed-forward stacks as well (`s1star`).
Position is carried by trained relative tables in every layer. The authors' models also allocate, and count, tables
they never use: an absolute position table, a score matrix in every `sdp` layer and a key map in every transform layer.
Cards of the published spaces count these as `idle`; the nano spaces have none.
"""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, DynamicConvolution, Mixer, Relative, RelativeAttention, Transform
from formwright.core.remember import remember, remembers
from formwright.space import Case, Choice, Fields, Record, Repeat, Space, Switch


@remembers
@dataclass(frozen=True)
class FlexibertSizes:
    """Hold what is the same at every level: widths to choose from, the tokens, and whether idle parts are counted.

    `types` counts the sentences that the embedding tells apart.
    """

    widths: tuple[int, int]
    feed_forward: tuple[int, int]
    vocabulary: int
    length: int
    idle: bool
    types: int = 1


PUBLISHED = FlexibertSizes(widths=(128, 256), feed_forward=(512, 1024), vocabulary=50_265, length=514, idle=True)
SMALL = FlexibertSizes(widths=(32, 64), feed_forward=(64, 128), vocabulary=1_000, length=128, idle=False, types=2)


def flexibert(name: str, detail: str, sizes: FlexibertSizes, *, tied: int = 1, free_stacks: bool = False) -> Space:
    """Make a FlexiBERT space: `tied` layers share a choice; `free_stacks` frees each feed-forward layer's width."""
    width = Choice(sizes.feed_forward)
    layer = Record.of(
        operation=Switch.of(sa=Choice(("sdp", "wma")), lt=Choice(("dft", "dct")), dsc=Choice((5, 9))),
        heads=Choice((2, 4)),
        hidden=Choice(sizes.widths),
        feed_forward=Repeat(width, (1, 3)) if free_stacks else Record.of(width=width, depth=Choice((1, 3))),
    )
    root = Record.of(layers=Repeat(layer, (2, 4), tied=tied))

    def build(design: Fields) -> Card:
        blocks = [_block(group, sizes) for group in design["layers"]]
        return _card(tuple([block for block in blocks for _ in range(tied)]), sizes)

    return Space(name, root, build, f"mixed encoders, {detail} (FlexiBERT, Tuli et al. 2022)")


@lru_cache(maxsize=1 << 12)
def _block(layer: Fields, sizes: FlexibertSizes) -> Block:
    stack = layer.feed_forward
    widths = stack if isinstance(stack, tuple) else (stack.width,) * stack.depth
    return Block(layer.hidden, _mixer(layer.operation, layer.heads, layer.hidden // layer.heads, sizes), widths)


def _mixer(operation: Case, heads: int, head_width: int, sizes: FlexibertSizes) -> Mixer:
    rows = 2 * sizes.length - 1
    match operation.tag:
        case "sa":
            return Attention(heads, head_width, operation.value, Relative(rows))
        case "lt":
            return Transform(operation.value, RelativeAttention(heads, head_width, rows))
        case _:
            return DynamicConvolution(operation.value, heads, head_width, Relative(rows))


def _card(blocks: tuple[Block, ...], sizes: FlexibertSizes) -> Card:
    embedding = _embedding(blocks[0].width, sizes)
    idle = sizes.length * embedding.width + sum(map(_idle, blocks)) if sizes.idle else 0
    return Card(encoder=Stack(embedding, blocks), idle=idle)


@cache
def _embedding(width: int, sizes: FlexibertSizes) -> TokenEmbedding:
    return TokenEmbedding(sizes.vocabulary, width, positions="relative", length=sizes.length, types=sizes.types)


@remember
def _idle(block: Block) -> int:
    if isinstance(block.mixer, Attention):
        return block.mixer.head_width**2 if block.mixer.score == "sdp" else 0
    return block.width**2 + block.width if isinstance(block.mixer, Transform) else 0


S2 = flexibert("flexibert", "layers in equal pairs", PUBLISHED, tied=2)
S1 = flexibert("flexibert-s1", "free layers", PUBLISHED)
S1_STAR = flexibert("flexibert-s1star", "free layers and stacks", PUBLISHED, free_stacks=True)
NANO = flexibert("flexibert-nano", "small enough to train in seconds", SMALL, tied=2)
NANO_S1 = flexibert("flexibert-nano-s1", "free layers, small enough to train in seconds", SMALL)
NANO_S1_STAR = flexibert(
    "flexibert-nano-s1star", "free layers and stacks, small enough to train in seconds", SMALL, free_stacks=True
)


def layer(operation: str, parameter: str | int, heads: int, hidden: int, feed_forward: tuple[int, ...]) -> Block:
    """Describe one layer in the notation of the paper's model cards."""
    stack: Any = feed_forward
    fields = Fields.of(operation=Case(operation, parameter), heads=heads, hidden=hidden, feed_forward=stack)
    return _block(fields, PUBLISHED)


def model(*layers: Block) -> Card:
    return _card(layers, PUBLISHED)


MINI = model(*[layer("sa", "sdp", 2, 256, (512,) * 3)] * 2, *[layer("lt", "dct", 4, 128, (1024,))] * 2)
MINI_WITHOUT_SECOND_ORDER = model(layer("sa", "sdp", 4, 128, (1024,)), layer("sa", "wma", 4, 128, (1024,)))
MINI_WITHOUT_HETEROSCEDASTIC = model(
    *[layer("lt", "dct", 4, 256, (1024,) * 3)] * 2, *[layer("sa", "sdp", 4, 128, (512,) * 3)] * 2
)
LARGE = model(*[layer("sa", "sdp", 8, 1024, (2048,) * 3)] * 12, *[layer("lt", "dct", 16, 512, (4096,))] * 12)


def _initial(operation: str, parameter: str | int, layers: int, hidden: int) -> Card:
    return model(*[layer(operation, parameter, hidden // 64, hidden, (4 * hidden,))] * layers)


# The twelve designs the paper's search starts from.
BERT_TINY = _initial("sa", "sdp", 2, 128)
BERT_2_256 = _initial("sa", "sdp", 2, 256)
BERT_4_128 = _initial("sa", "sdp", 4, 128)
BERT_MINI = _initial("sa", "sdp", 4, 256)
FNET_TINY = _initial("lt", "dft", 2, 128)
FNET_2_256 = _initial("lt", "dft", 2, 256)
FNET_4_128 = _initial("lt", "dft", 4, 128)
FNET_MINI = _initial("lt", "dft", 4, 256)
CONVBERT_TINY = _initial("dsc", 9, 2, 128)
CONVBERT_2_256 = _initial("dsc", 9, 2, 256)
CONVBERT_4_128 = _initial("dsc", 9, 4, 128)
CONVBERT_MINI = _initial("dsc", 9, 4, 256)
