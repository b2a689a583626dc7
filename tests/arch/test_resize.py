"""The sizes of AutoBERT-Zero: base as it was found, small and large made from it."""

import pytest

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Branch, Cell, Junction, Layer, Stack
from formwright.arch.ops import (
    Attention,
    Convolution,
    CrossAttention,
    Identity,
    LightweightConvolution,
    OpGraph,
    RelativeAttention,
    Transform,
)
from formwright.arch.resize import extended, widened
from formwright.core.errors import IllegalInput
from formwright.cost import params
from formwright.space.zoo.autobert_zero import KERNELS, SECOND_LAYER, TWELFTH_LAYER

TERMS = (SECOND_LAYER,) * 3 + (TWELFTH_LAYER,) * 3


def convolution_and_attention(width: int, heads: int, number: int) -> tuple[Layer, Layer]:
    return (
        Block(width, LightweightConvolution(KERNELS[::-1][number], heads), (4 * width,)),
        Block(width, OpGraph(heads, 64, TERMS[number]), (4 * width,)),
    )


def design(width: int, heads: int, times: int = 1) -> Card:
    blocks = [convolution_and_attention(width, heads, number) for number in range(6)]
    layers = tuple(layer for block in blocks for _ in range(times) for layer in block)
    return Card(Stack(TokenEmbedding(30522, width, types=2), layers), pooler=True)


BASE = design(768, 12)


def test_sizes_are_those_of_the_paper() -> None:
    large = widened(extended(BASE, 2), 1024)
    assert large == design(1024, 16, times=2)
    assert len(large.encoder.layers) == 24
    assert large.encoder.layers[0:2] == large.encoder.layers[2:4] != large.encoder.layers[4:6]
    assert {layer.width for layer in large.encoder.layers} == {1024}
    assert {layer.feed_forward for layer in large.encoder.layers if isinstance(layer, Block)} == {(4096,)}
    small = widened(BASE, 256)
    assert small == design(256, 4)
    assert widened(small, 768) == BASE
    # the paper counts 104 and 318 million; which of its attentions have three or four inputs is known of two layers
    assert params(BASE) == pytest.approx(104e6, rel=0.01)
    assert params(widened(extended(BASE, 2), 1024)) == pytest.approx(318e6, rel=0.01)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_blocks_of_any_length(times: int) -> None:
    layers = tuple(Block(16, Attention(1, 16), (hidden,)) for hidden in (1, 2, 3, 4, 5, 6))
    card = Card(Stack(TokenEmbedding(10, 16), layers))
    for block in (1, 2, 3, 6):
        made = extended(card, times, block).stacks[0].layers
        assert len(made) == 6 * times
        order = [layer.feed_forward[0] for layer in made if isinstance(layer, Block)]
        assert order[: block * times] == [*range(1, block + 1)] * times
    assert extended(card, 1) == card


def test_every_kind_of_head_grows_and_what_has_none_stays() -> None:
    mixers = (Attention(2, 8), Transform("dct", RelativeAttention(2, 8, 9)), Transform("dft"), Identity())
    layers = tuple(Block(16, mixer, (32, 8)) for mixer in mixers)
    made = widened(Card(Stack(TokenEmbedding(10, 16, factorised=4), layers)), 32)
    assert [layer.mixer for layer in made.stacks[0].layers if isinstance(layer, Block)] == [
        Attention(4, 8),
        Transform("dct", RelativeAttention(4, 8, 9)),
        Transform("dft"),
        Identity(),
    ]
    assert made.stacks[0].embedding == TokenEmbedding(10, 32, factorised=4)
    assert {layer.feed_forward for layer in made.stacks[0].layers if isinstance(layer, Block)} == {(64, 16)}


def test_both_stacks_grow() -> None:
    encoder = Stack(TokenEmbedding(10, 16), (Block(16, Attention(2, 8)),) * 2)
    cross = CrossAttention(2, 8)
    decoder = Stack(TokenEmbedding(10, 16), (Block(16, Attention(2, 8), cross=cross),) * 2, causal=True)
    made = widened(extended(Card(encoder, decoder), 2), 32)
    assert [len(stack.layers) for stack in made.stacks] == [4, 4]
    assert made.decoder.layers[0] == Block(32, Attention(4, 8), cross=CrossAttention(4, 8))


CELL = Cell(16, (Junction(Branch(0, Convolution(), 16)),))


@pytest.mark.parametrize(
    ("layers", "change", "message"),
    [
        ((Block(16, Attention(2, 8)),) * 3, lambda card: extended(card, 2), "3 layers .* blocks of 2"),
        ((Block(16, Attention(2, 8)),) * 2, lambda card: extended(card, 0), "at least 1, not times=0"),
        ((Block(16, Attention(3, 8)),), lambda card: widened(card, 24 + 16), "number of heads of 3"),
        ((Block(16, Attention(2, 8), (1,)),), lambda card: widened(card, 8), "feed-forward width of 1"),
        ((Block(16, Attention(2, 8)), Block(32, Attention(2, 8))), lambda card: widened(card, 32), "all 16 wide"),
        ((CELL,), lambda card: widened(card, 32), "only blocks"),
    ],
)
def test_what_does_not_fit_is_refused(layers: tuple[Layer, ...], change: object, message: str) -> None:
    with pytest.raises(IllegalInput, match=message):
        change(Card(Stack(TokenEmbedding(10, 16), layers)))  # type: ignore[operator]
