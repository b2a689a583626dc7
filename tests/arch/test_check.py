"""Every rule of a legal design: what breaks it, where the fault is, and what it says."""

from typing import Literal

import pytest
from tests.arch.random_cards import random_card

from formwright.arch.card import Card
from formwright.arch.check import branches, has_relative, operations
from formwright.arch.layers import (
    Block,
    Branch,
    Cell,
    FrameEmbedding,
    Junction,
    Layer,
    PatchEmbedding,
    Positions,
    Stack,
    TokenEmbedding,
)
from formwright.arch.ops import (
    Attention,
    Convolution,
    CrossAttention,
    DynamicConvolution,
    Identity,
    LightweightConvolution,
    Operation,
    OpGraph,
    Relative,
    RelativeAttention,
    Transform,
)
from formwright.core.errors import IllegalDesign
from formwright.core.rng import derive

PLAIN = Block(32, Attention(2, 16), (64,))
NARROW = Block(16, Attention(2, 16), (64,))
RELATIVE = Block(32, Attention(2, 16, relative=Relative(9)))
DENSE = Branch(0, Convolution(), 32)
DCT = Block(32, Transform("dct"))
INVENTED = Block(32, OpGraph(2, 16, ("softmax", "Q")))
ATTENDING = Block(32, Attention(2, 16), cross=CrossAttention(2, 16))
ATTENDING_CELL = Cell(32, (Junction(DENSE, Branch(0, CrossAttention(2, 16, layers=2), 32)),))


def stack(*layers: Layer, positions: Positions = "learned", causal: bool = False, width: int = 32) -> Stack:
    return Stack(TokenEmbedding(100, width, positions=positions), layers, causal)


def encoder(*layers: Layer, positions: Positions = "learned", causal: bool = False) -> dict[str, Stack]:
    return {"encoder": stack(*layers, positions=positions, causal=causal)}


def cell(*junctions: Junction) -> dict[str, Stack]:
    return encoder(Cell(32, junctions))


def seq2seq(above: Layer, *below: Layer) -> dict[str, Stack]:
    return {"encoder": stack(*below, width=below[0].width), "decoder": stack(above, causal=True)}


def faults_of(stacks: dict[str, Stack]) -> list[tuple[str, str]]:
    with pytest.raises(IllegalDesign) as caught:
        Card(**stacks)  # type: ignore[arg-type]
    assert caught.value.what == "card"
    return [(fault.where, fault.what) for fault in caught.value.faults]


BROKEN: dict[str, tuple[dict[str, Stack], str, str]] = {
    "no layers": (encoder(), "encoder.layers", "is empty; a stack needs at least one layer"),
    "embedding width": (encoder(NARROW), "encoder.embedding.width", "is 32, but the first layer is 16 wide"),
    "embedding width of a decoder": (
        {"decoder": stack(NARROW, causal=True)},
        "decoder.embedding.width",
        "is 32, but the first layer is 16 wide",
    ),
    "patch": (
        {"encoder": Stack(PatchEmbedding(224, 15, 32), (PLAIN,))},
        "encoder.embedding.patch",
        "is 15, which does not divide the image of 224",
    ),
    "relative positions that nobody holds": (
        encoder(PLAIN, positions="relative"),
        "encoder.embedding.positions",
        "is 'relative' ... 'none'",
    ),
    "relative positions that are denied": (
        encoder(PLAIN, RELATIVE, positions="none"),
        "encoder.embedding.positions",
        "is 'none' ... 'relative'",
    ),
    "frames with relative positions denied": (
        {"encoder": Stack(FrameEmbedding(40, 32, positions="none"), (RELATIVE,))},
        "encoder.embedding.positions",
        "is 'none' ... 'relative'",
    ),
    "causal transform": (
        encoder(PLAIN, DCT, causal=True),
        "encoder.layers[1].mixer",
        "is transform ... cannot be causal",
    ),
    "causal op graph": (
        {"decoder": stack(INVENTED, causal=True)},
        "decoder.layers[0].mixer",
        "is op-graph ... cannot be causal",
    ),
    "cross-attention in an encoder": (encoder(PLAIN, ATTENDING), "encoder.layers[1].cross", "attends to an encoder"),
    "cross-attention without an encoder": (
        {"decoder": stack(Cell(32, (Junction(Branch(0, CrossAttention(2, 16), 32)),)), causal=True)},
        "decoder.layers[0].junctions[0].left.operation",
        "attends to an encoder",
    ),
    "cross-attention to too many layers": (
        seq2seq(ATTENDING_CELL, PLAIN),
        "decoder.layers[0].junctions[0].right.operation.layers",
        "is 2, but the encoder has 1 layers",
    ),
    "cross-attention to unequal widths": (
        seq2seq(Block(32, Identity(), cross=CrossAttention(2, 16, layers=2)), NARROW, PLAIN),
        "decoder.layers[0].cross.layers",
        "reaches encoder layers of unequal width",
    ),
    "width of the relative term": (
        encoder(Block(32, Transform("dft", RelativeAttention(2, 8, 9)))),
        "encoder.layers[0].mixer.relative",
        "is 16 wide (heads x head width) and is added to a width of 32",
    ),
    "lightweight heads of a block": (
        encoder(Block(32, LightweightConvolution(3, 5))),
        "encoder.layers[0].mixer.heads",
        "is 5, which does not divide the width 32",
    ),
    "no junctions": (cell(), "encoder.layers[0].junctions", "is empty; a cell needs at least one junction"),
    "state that does not exist yet": (
        cell(
            Junction(DENSE), Junction(DENSE, Branch(2, Convolution(), 32)), Junction(Branch(1, Identity(), 32), DENSE)
        ),
        "encoder.layers[0].junctions[1].right.input",
        "is 2; only states 0 to 1 exist before this junction",
    ),
    "identity that changes the width": (
        cell(Junction(Branch(0, Convolution(), 16)), Junction(Branch(1, Identity(), 32))),
        "encoder.layers[0].junctions[1].left.width",
        "is 32 ... identity ... width 16 of state 1",
    ),
    "lightweight heads of a branch": (
        cell(Junction(DENSE, Branch(0, LightweightConvolution(3, 5), 64))),
        "encoder.layers[0].junctions[0].right.operation.heads",
        "is 5, which does not divide 64",
    ),
    "ungated convolution that changes the width": (
        cell(Junction(Branch(0, LightweightConvolution(3, 4, gated=False), 64))),
        "encoder.layers[0].junctions[0].left.width",
        "is 64, but without a gate the convolution keeps the width 32",
    ),
    "junction that nobody reads": (
        cell(Junction(DENSE), Junction(DENSE)),
        "encoder.layers[0].junctions[0]",
        "is never used; leave it out",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_the_only_fault_and_says_where(name: str) -> None:
    stacks, where, what = BROKEN[name]
    ((place, told),) = faults_of(stacks)
    assert place == where
    assert all(fact in told for fact in what.split(" ... "))


def test_all_faults_of_all_parts_are_listed_at_once() -> None:
    broken = Cell(16, (Junction(DENSE), Junction(Branch(3, Identity(), 8), Branch(0, Identity(), 8))))
    lightweight = Block(32, LightweightConvolution(3, 5))
    below = Stack(PatchEmbedding(10, 3, 64, positions="relative"), (lightweight, broken, ATTENDING), causal=False)
    above = Stack(
        TokenEmbedding(100, 8), (DCT, Block(32, Identity(), cross=CrossAttention(1, 4, layers=4))), causal=True
    )
    assert [where for where, _ in faults_of({"encoder": below, "decoder": above})] == [
        "encoder.embedding.width",
        "encoder.embedding.patch",
        "encoder.embedding.positions",
        "encoder.layers[0].mixer.heads",
        "encoder.layers[1].junctions[1].left.input",
        "encoder.layers[1].junctions[1].right.width",
        "encoder.layers[1].junctions[0]",
        "encoder.layers[2].cross",
        "decoder.embedding.width",
        "decoder.layers[0].mixer",
        "decoder.layers[1].cross.layers",
    ]


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "relative"])
def test_relative_positions_may_stand_beside_others(positions: Literal["learned", "sinusoidal", "relative"]) -> None:
    assert Card(stack(PLAIN, RELATIVE, positions=positions)).encoder is not None


@pytest.mark.parametrize(
    ("operation", "relative"),
    [
        (Attention(2, 16), False),
        (Attention(2, 16, relative=Relative(9)), True),
        (DynamicConvolution(3, 2, 16), False),
        (DynamicConvolution(3, 2, 16, Relative(9)), True),
        (Transform("dct", RelativeAttention(2, 16, 9)), True),
        (Identity(), False),
    ],
)
def test_relative_positions_are_found_in_an_operation(operation: Operation, relative: bool) -> None:
    assert has_relative(operation) is relative


def test_random_cards_and_neighbours_of_the_rules_are_legal() -> None:
    assert Card(**seq2seq(ATTENDING_CELL, NARROW, PLAIN, PLAIN)).family == "encoder-decoder"  # type: ignore[arg-type]
    assert Card(stack(DCT, INVENTED)).family == "encoder"
    assert Card(stack(Block(32, Transform("dft", RelativeAttention(2, 16, 9))), positions="relative")).pooler is False
    assert Card(**cell(Junction(Branch(0, LightweightConvolution(3, 4), 64)))).output_width == 64  # type: ignore[arg-type]
    rng = derive(0, "cards")
    assert {random_card(rng).family for _ in range(60)} == {"encoder", "decoder", "encoder-decoder", "vision"}
    assert [place for place, _ in operations(ATTENDING)] == ["mixer", "cross"]
    assert [place for place, _ in operations(PLAIN)] == ["mixer"]
    assert [place for place, _ in branches(ATTENDING_CELL)] == ["junctions[0].left", "junctions[0].right"]
    places = [place for place, _ in operations(Cell(32, (Junction(DENSE), Junction(DENSE))))]
    assert places == ["junctions[0].left.operation", "junctions[1].left.operation"]


def test_relative_positions_have_the_axes_of_their_input() -> None:
    block = Block(32, Attention(2, 16, relative=Relative(6, axes=2)))
    with pytest.raises(IllegalDesign, match="need patches"):
        Card(encoder=Stack(TokenEmbedding(9, 32), (block,)))
    assert Card(encoder=Stack(PatchEmbedding(8, 4, 32), (block,))).family == "vision"
    block = Block(32, DynamicConvolution(3, 2, 16, Relative(6, values=True)))
    with pytest.raises(IllegalDesign, match="must have one axis and no values"):
        Card(encoder=Stack(TokenEmbedding(9, 32), (block,)))


@pytest.mark.parametrize(
    ("layer", "where"),
    [
        (Block(32, LightweightConvolution(3, heads=0)), "mixer.heads"),
        (Block(-32, Attention(2, 16)), "width"),
        (Block(32, Attention(5000, 16)), "mixer.heads"),
        (Block(32, Attention(2, 16), (64, 0)), "feed_forward[1]"),
        (Block(32, Attention(2, 16, relative=Relative(0))), "mixer.relative.rows"),
    ],
)
def test_sizes_of_designs_made_in_python_are_checked(layer: Block, where: str) -> None:
    with pytest.raises(IllegalDesign) as caught:
        Card(encoder=Stack(TokenEmbedding(9, layer.width), (layer,)))
    assert f"encoder.layers[0].{where}" in [fault.where for fault in caught.value.faults] or layer.width < 0


def test_layers_without_parts_and_with_too_many() -> None:
    layers = (Block(32, Attention(2, 16)), Block(16, Identity()), Block(32, Attention(2, 16)))
    with pytest.raises(IllegalDesign) as caught:
        Card(encoder=Stack(TokenEmbedding(9, 32), layers))
    assert [fault.where for fault in caught.value.faults] == ["encoder.layers[1].width"]
    assert "keeps the width 32" in str(caught.value)
    stack = Stack(TokenEmbedding(9, 32), (Block(32, Attention(2, 16), (32,) * 64),))
    assert Card(encoder=stack).encoder == stack
    with pytest.raises(IllegalDesign, match=r"layers\[0\]\.feed_forward: has 65 widths; at most 64 are allowed"):
        Card(encoder=Stack(TokenEmbedding(9, 32), (Block(32, Attention(2, 16), (32,) * 65),)))
    junctions = tuple(Junction(Branch(index, Identity(), 32, norm=True)) for index in range(65))
    with pytest.raises(IllegalDesign, match=r"layers\[0\]\.junctions: has 65 junctions; at most 64 are allowed"):
        Card(encoder=Stack(TokenEmbedding(9, 32), (Cell(32, junctions),)))
