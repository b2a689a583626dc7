"""The counters of authors give their published figures, term by term, and refuse what they do not know."""

import pytest
from tests.cost.cases import CARDS

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Layer, Stack
from formwright.arch.ops import Attention, Identity, Relative
from formwright.core.errors import IllegalInput
from formwright.cost import COSTS, macs
from formwright.cost.authors_counters import autoformer_flops, electra_flops, vitas_flops
from formwright.space.zoo import load_card


def bert(width: int, layers: int, heads: int, hidden: int, table: int | None = None, head_width: int = 64) -> Card:
    block = Block(width, Attention(heads, head_width), (hidden,))
    return Card(Stack(TokenEmbedding(30_522, width, factorised=table, types=2), (block,) * layers))


SMALL = bert(256, 12, 4, 1024, table=128)


@pytest.mark.parametrize(
    ("card", "published"),
    [(load_card("bert-base"), 2.862e10), (load_card("bert-large"), 8.747e10), (SMALL, 3.677e9)],
    ids=["base", "large", "small-256"],
)
def test_published_counts(card: Card, published: float) -> None:
    assert float(f"{electra_flops(card, 128):.3e}") == published


def test_without_the_dense_lookup_bert_base_takes_what_is_published() -> None:
    lookup = 128 * 2 * 768 * 30_522
    assert float(f"{electra_flops(load_card('bert-base')) - lookup:.3e}") == 2.262e10


def slow_count(width: int, layers: int, heads: int, hidden: int, table: int, head_width: int, length: int) -> int:
    """Count token by token and head by head, term by term as the publication describes them."""
    dropout, norm, activation, softmax = 4, 5, 8, 5
    once = 2 * table * 30_522 + 2 * table * 2 + 2 * table * length + 2 * table + norm * table + dropout * table
    if table != width:
        once += 2 * table * width + width
    for _ in range(layers):
        for _ in range(heads):
            once += 3 * head_width * (2 * width + 1)  # query, key and value with biases
            once += length * (2 * head_width + softmax + dropout + 1)  # scores, their softmax, dropout and scale
        once += length * 2 * width  # weighted sum of values
        once += width * (2 * width + 1 + dropout + 1) + norm  # output map, bias, dropout, residual, one norm
        once += hidden * (2 * width + 1 + activation)
        once += width * (2 * hidden + 1 + dropout + 1 + norm)
    once += width * (2 * width + 1 + activation + 2)  # the classifier
    return once * length


@pytest.mark.parametrize("length", [1, 64, 128])
@pytest.mark.parametrize(
    ("width", "layers", "heads", "hidden", "table", "head_width"),
    [(128, 2, 2, 512, 128, 64), (256, 3, 4, 1000, 64, 64), (96, 1, 5, 77, 96, 16)],
)
def test_counts_term_by_term(
    width: int, layers: int, heads: int, hidden: int, table: int, head_width: int, length: int
) -> None:
    card = bert(width, layers, heads, hidden, None if table == width else table, head_width)
    assert electra_flops(card, length) == slow_count(width, layers, heads, hidden, table, head_width, length)


@pytest.mark.parametrize("name", ["patches", "decoder", "translation", "frames"])
def test_what_is_no_text_encoder_is_refused(name: str) -> None:
    with pytest.raises(IllegalInput, match=rf"{CARDS[name].family} design.*macs or flops"):
        electra_flops(CARDS[name])


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ((Block(32, Identity(), (64,)),), "one feed-forward layer"),
        ((Block(32, Attention(2, 16)),), "one feed-forward layer"),
        ((Block(32, Attention(2, 16), (64, 64)),), "one feed-forward layer"),
        (CARDS["cells"].stacks[0].layers[:1], "one feed-forward layer"),
        ((Block(32, Attention(2, 16, "wma"), (64,)),), "scaled dot products"),
        ((Block(32, Attention(2, 16, relative=Relative(9)), (64,)),), "relative positions"),
        ((Block(32, Attention(2, 16), (64,)), Block(48, Attention(2, 16), (64,))), "one width"),
    ],
    ids=["no attention", "no feed-forward", "two feed-forwards", "cell", "wma", "relative", "two widths"],
)
def test_layers_it_does_not_know_are_refused(blocks: tuple[Layer, ...], message: str) -> None:
    positions = "relative" if message == "relative positions" else "learned"
    with pytest.raises(IllegalInput, match=message):
        electra_flops(Card(Stack(TokenEmbedding(100, 32, positions=positions), blocks)))


def test_the_counter_of_vitas_leaves_out_the_class_token() -> None:
    card = load_card("vitas-c")
    patches, width, inner, hidden = 196, 230, 144, 720
    layer = (
        3 * patches * width * inner + 2 * patches**2 * inner + patches * inner * width + 2 * patches * width * hidden
    )
    assert vitas_flops(card) == patches * 768 * width + 12 * layer + patches * width * 1_000


# what the authors' `get_complexity(196)` gives for their configuration files of the three models
AUTHORS = {"t": 1_344_034_362, "s": 4_892_144_730, "b": 11_236_929_660}


@pytest.mark.parametrize("size", AUTHORS)
def test_the_counter_of_autoformer_counts_as_the_authors_code(size: str) -> None:
    card = load_card(f"autoformer-{size}")
    assert autoformer_flops(card) == COSTS.get("autoformer")(card).value == AUTHORS[size]
    assert macs(card) > AUTHORS[size]  # which counts each head's relative positions


def pictures(*layers: Block, **embedding: object) -> Card:
    patches = PatchEmbedding(**{"image": 8, "patch": 2, "width": 32, "channels": 1, **embedding})  # type: ignore[arg-type]
    return Card(Stack(patches, layers))


PLAIN_BLOCK = Block(32, Attention(2, 16), (64,), norm="pre")


def test_each_term_of_autoformers_counter() -> None:
    places, width, inner, hidden = 17, 32, 32, 64  # 4 x 4 patches and a class token
    whole = width + 16 * 4 * width + places * width // 2
    tokens = places + 1
    layer = 2 * tokens * width + 4 * tokens * width * inner + 2 * tokens**2 * inner + 2 * tokens * width * hidden
    assert autoformer_flops(pictures(PLAIN_BLOCK)) == whole + layer
    far = Relative(rows=2 * 4 + 2, axes=2, values=True)
    positions = 2 * 4 * tokens**2 + tokens**2 // 2 + tokens * inner // 2
    block = Block(32, Attention(2, 16, relative=far), (64,), norm="pre")
    assert autoformer_flops(pictures(block, block)) == whole + 2 * (layer + positions)


@pytest.mark.parametrize(
    "card",
    [
        *(CARDS[name] for name in ("mixed", "decoder", "translation", "frames")),
        pictures(PLAIN_BLOCK, class_tokens=2),
        pictures(PLAIN_BLOCK, positions="sinusoidal"),
        pictures(Block(32, Identity(), (64,))),
        pictures(Block(32, Attention(2, 16), (64, 64))),
        pictures(Block(32, Attention(2, 16))),
        pictures(Block(32, Attention(2, 16, "wma"), (64,))),
        pictures(Block(32, Attention(2, 16, relative=Relative(9)), (64,))),
        pictures(PLAIN_BLOCK, Block(48, Attention(2, 16), (64,))),
    ],
)
def test_the_counter_of_autoformer_refuses_other_designs(card: Card) -> None:
    with pytest.raises(IllegalInput, match="macs or flops"):
        autoformer_flops(card)


@pytest.mark.parametrize(
    "card",
    [
        *(CARDS[name] for name in ("patches", "mixed", "decoder", "translation", "frames")),
        pictures(Block(32, Identity(), (64,))),
        pictures(Block(32, Attention(2, 16), (64, 64))),
        pictures(Block(32, Attention(2, 16))),
        pictures(Block(32, Attention(2, 16, "wma"), (64,))),
        pictures(Block(32, Attention(2, 16, relative=Relative(rows=10, axes=2, values=True)), (64,))),
        pictures(PLAIN_BLOCK, Block(48, Attention(2, 16), (64,))),
    ],
)
def test_the_counter_of_vitas_refuses_other_designs(card: Card) -> None:
    assert vitas_flops(pictures(PLAIN_BLOCK)) > 0
    with pytest.raises(IllegalInput, match="macs or flops"):
        vitas_flops(card)
