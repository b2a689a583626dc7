"""Decoders for causal language models: a small space of our making, and LTS (Javaheripi et al., 2022).

LiteTransformerSearch varies depth, width, heads and the feed-forward width of GPT-2; values are those of the authors'
released space, and the cards are twelve of the designs that they found, named by their parameters outside the
embedding. In `gpt-nano` every layer has heads and a feed-forward width of its own; heads are 16 wide, so that a design
with fewer of them reads its weights out of one with more.
"""

from collections.abc import Sequence

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.space import Choice, Fields, Record, Repeat, Space

_PUBLISHED = (50_257, 1_024)  # words and places
_NANO = (2_000, 128)
_HEAD = 16


def gpt(tokens: tuple[int, int], width: int, layers: Sequence[tuple[Attention, int]]) -> Card:
    """Describe a decoder like GPT-2: norms before each part and at the end, trained positions."""
    embedding = TokenEmbedding(tokens[0], width, length=tokens[1], norm=False)
    blocks = tuple(Block(width, attention, (inner,), norm="pre") for attention, inner in layers)
    return Card(decoder=Stack(embedding, blocks, causal=True, final_norm=True))


def _equal_layers(tokens: tuple[int, int], layers: int, width: int, inner: int, heads: int) -> Card:
    return gpt(tokens, width, [(Attention(heads, width // heads), inner)] * layers)


def _lts(
    name: str, tokens: tuple[int, int], layers: range, widths: range, inner: range, heads: tuple[int, ...]
) -> Space:
    root = Record.of(
        layers=Choice(tuple(layers)),
        hidden=Choice(tuple(widths)),
        feed_forward=Choice(tuple(inner)),
        heads=Choice(heads),
    )

    def card(design: Fields) -> Card:
        return _equal_layers(tokens, design.layers, design.hidden, design.feed_forward, design.heads)

    return Space(name, root, card, "decoders with equal layers (LTS, Javaheripi et al. 2022)")


LTS = _lts("lts", _PUBLISHED, range(1, 11), range(128, 1024, 64), range(128, 1024, 64), (2, 4, 8))
LTS_NANO = _lts("lts-nano", _NANO, range(1, 5), range(32, 129, 32), range(32, 257, 32), (1, 2, 4))


def _nano(design: Fields) -> Card:
    layers = [(Attention(layer.heads, _HEAD), layer.feed_forward) for layer in design.layers]
    return gpt(_NANO, design.width, layers)


NANO = Space(
    "gpt-nano",
    Record.of(
        width=Choice((32, 64, 96)),
        layers=Repeat(Record.of(heads=Choice((1, 2, 4)), feed_forward=Choice((64, 128, 256))), (1, 2, 3, 4)),
    ),
    _nano,
    "decoders for language models, small enough to train in seconds",
)


LTS_1M = _equal_layers(_PUBLISHED, 4, 128, 768, 4)
LTS_3M = _equal_layers(_PUBLISHED, 4, 320, 576, 2)
LTS_4M = _equal_layers(_PUBLISHED, 4, 320, 896, 4)
LTS_6M = _equal_layers(_PUBLISHED, 4, 448, 896, 2)
LTS_7M = _equal_layers(_PUBLISHED, 9, 320, 640, 2)
LTS_9M = _equal_layers(_PUBLISHED, 4, 576, 896, 8)
LTS_13M = _equal_layers(_PUBLISHED, 10, 384, 960, 4)
LTS_19M = _equal_layers(_PUBLISHED, 7, 704, 512, 2)
LTS_25M = _equal_layers(_PUBLISHED, 7, 768, 768, 2)
LTS_30M = _equal_layers(_PUBLISHED, 9, 704, 960, 2)
LTS_33M = _equal_layers(_PUBLISHED, 6, 960, 960, 4)
LTS_50M = _equal_layers(_PUBLISHED, 9, 960, 960, 2)
