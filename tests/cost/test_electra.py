import pytest
from tests.cost.cases import CARDS

from formwright.arch.card import Card
from formwright.arch.layers import Block, FrameEmbedding, Stack, TokenEmbedding
from formwright.arch.ops import Attention, Identity, Relative
from formwright.core.errors import IllegalInput
from formwright.cost import electra_flops
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
    with pytest.raises(IllegalInput, match=r"knows text encoders only; .* Use macs or flops"):
        electra_flops(CARDS[name])


def test_a_refusal_names_the_family() -> None:
    with pytest.raises(IllegalInput, match="this is a vision design"):
        electra_flops(CARDS["patches"])


EMBEDDING = TokenEmbedding(100, 32)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ((Block(32, Identity(), (64,)),), "self-attention with one feed-forward layer only"),
        ((Block(32, Attention(2, 16)),), "self-attention with one feed-forward layer only"),
        ((Block(32, Attention(2, 16), (64, 64)),), "self-attention with one feed-forward layer only"),
        ((Block(32, Attention(2, 16, "wma"), (64,)),), "scaled dot products without relative positions"),
        ((Block(32, Attention(2, 16), (64,)), Block(48, Attention(2, 16), (64,))), "layers of one width only"),
    ],
    ids=["no attention", "no feed-forward", "two feed-forwards", "wma", "two widths"],
)
def test_layers_it_does_not_know_are_refused(blocks: tuple[Block, ...], message: str) -> None:
    with pytest.raises(IllegalInput, match=message):
        electra_flops(Card(Stack(EMBEDDING, blocks)))


def test_relative_positions_and_cells_are_refused() -> None:
    block = Block(32, Attention(2, 16, relative=Relative(9)), (64,))
    with pytest.raises(IllegalInput, match="without relative positions"):
        electra_flops(Card(Stack(TokenEmbedding(100, 32, positions="relative"), (block,))))
    with pytest.raises(IllegalInput, match="one feed-forward layer only"):
        electra_flops(Card(Stack(EMBEDDING, CARDS["cells"].stacks[0].layers[:1])))


def test_frames_are_no_text() -> None:
    with pytest.raises(IllegalInput, match="text encoders only"):
        electra_flops(Card(Stack(FrameEmbedding(20, 32), (Block(32, Attention(2, 16), (64,)),))))
