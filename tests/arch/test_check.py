"""Every rule of a legal design: what breaks it, where the fault is, and what it says."""

from typing import Literal

import pytest
from tests.arch.random_cards import random_card

from formwright.arch import ops
from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding, PatchEmbedding, Positions, TokenEmbedding
from formwright.arch.layers import Block, Branch, Cell, Junction, Layer, Stack
from formwright.core.errors import IllegalDesign
from formwright.core.rng import derive

PLAIN = Block(32, ops.Attention(2, 16), (64,))
NARROW = Block(16, ops.Attention(2, 16), (64,))
RELATIVE = Block(32, ops.Attention(2, 16, relative=ops.Relative(9)))
DENSE = Branch(0, ops.Convolution(), 32)
DCT = Block(32, ops.Transform("dct"))
INVENTED = Block(32, ops.OpGraph(2, 16, ("softmax", "Q")))
ATTENDING = Block(32, ops.Attention(2, 16), cross=ops.CrossAttention(2, 16))
ATTENDING_CELL = Cell(32, (Junction(DENSE, Branch(0, ops.CrossAttention(2, 16, layers=2), 32)),))


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


LAYER = "encoder.layers[0]"
BROKEN: dict[str, tuple[dict[str, Stack], str, str]] = {
    "no layers": (encoder(), "encoder.layers", "empty"),
    "embedding width": (encoder(NARROW), "encoder.embedding.width", "32 ... 16"),
    "width of a decoder": ({"decoder": stack(NARROW, causal=True)}, "decoder.embedding.width", "32 ... 16"),
    "patch": ({"encoder": Stack(PatchEmbedding(224, 15, 32), (PLAIN,))}, "encoder.embedding.patch", "15 ... 224"),
    "no relative positions": (encoder(PLAIN, positions="relative"), "encoder.embedding.positions", "'none'"),
    "denied": (encoder(PLAIN, RELATIVE, positions="none"), "encoder.embedding.positions", "'none' ... 'relative'"),
    "frames with relative positions denied": (
        {"encoder": Stack(FrameEmbedding(40, 32, positions="none"), (RELATIVE,))},
        "encoder.embedding.positions",
        "'none' ... 'relative'",
    ),
    "causal transform": (encoder(PLAIN, DCT, causal=True), "encoder.layers[1].mixer", "transform ... causal"),
    "causal op graph": ({"decoder": stack(INVENTED, causal=True)}, "decoder.layers[0].mixer", "op-graph ... causal"),
    "cross-attention in an encoder": (encoder(PLAIN, ATTENDING), "encoder.layers[1].cross", "encoder"),
    "cross-attention without an encoder": (
        {"decoder": stack(Cell(32, (Junction(Branch(0, ops.CrossAttention(2, 16), 32)),)), causal=True)},
        "decoder.layers[0].junctions[0].left.operation",
        "encoder",
    ),
    "cross-attention to too many layers": (
        seq2seq(ATTENDING_CELL, PLAIN),
        "decoder.layers[0].junctions[0].right.operation.layers",
        "2 ... 1 layers",
    ),
    "cross-attention to unequal widths": (
        seq2seq(Block(32, ops.Identity(), cross=ops.CrossAttention(2, 16, layers=2)), NARROW, PLAIN),
        "decoder.layers[0].cross.layers",
        "unequal width",
    ),
    "width of the relative term": (
        encoder(Block(32, ops.Transform("dft", ops.RelativeAttention(2, 8, 9)))),
        f"{LAYER}.mixer.relative",
        "16 ... 32",
    ),
    "heads of a block": (encoder(Block(32, ops.LightweightConvolution(3, 5))), f"{LAYER}.mixer.heads", "5 ... 32"),
    "no junctions": (cell(), f"{LAYER}.junctions", "empty"),
    "state that does not exist yet": (
        cell(
            Junction(DENSE),
            Junction(DENSE, Branch(2, ops.Convolution(), 32)),
            Junction(Branch(1, ops.Identity(), 32), DENSE),
        ),
        f"{LAYER}.junctions[1].right.input",
        "2 ... 0 to 1",
    ),
    "identity that changes the width": (
        cell(Junction(Branch(0, ops.Convolution(), 16)), Junction(Branch(1, ops.Identity(), 32))),
        f"{LAYER}.junctions[1].left.operation.type",
        "identity ... 16 ... 32",
    ),
    "lightweight heads of a branch": (
        cell(Junction(DENSE, Branch(0, ops.LightweightConvolution(3, 5), 64))),
        f"{LAYER}.junctions[0].right.operation.heads",
        "5 ... 64",
    ),
    "ungated convolution that changes the width": (
        cell(Junction(Branch(0, ops.LightweightConvolution(3, 4, gated=False), 64))),
        f"{LAYER}.junctions[0].left.operation.gated",
        "32 ... 64",
    ),
    "unused junction": (cell(Junction(DENSE), Junction(DENSE)), f"{LAYER}.junctions[0]", "never used"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_the_only_fault_and_says_where(name: str) -> None:
    stacks, where, what = BROKEN[name]
    ((place, told),) = faults_of(stacks)
    assert place == where
    assert all(fact in told for fact in what.split(" ... "))


def test_all_faults_of_all_parts_are_listed_at_once() -> None:
    broken = Cell(16, (Junction(DENSE), Junction(Branch(3, ops.Identity(), 8), Branch(0, ops.Identity(), 8))))
    lightweight = Block(32, ops.LightweightConvolution(3, 5))
    below = Stack(PatchEmbedding(10, 3, 64, positions="relative"), (lightweight, broken, ATTENDING), causal=False)
    reader = Block(32, ops.Identity(), cross=ops.CrossAttention(1, 4, layers=4))
    above = Stack(TokenEmbedding(100, 8), (DCT, reader), causal=True)
    assert [where for where, _ in faults_of({"encoder": below, "decoder": above})] == [
        "encoder.embedding.width",
        "encoder.embedding.patch",
        "encoder.embedding.positions",
        "encoder.layers[0].mixer.heads",
        "encoder.layers[1].junctions[1].left.input",
        "encoder.layers[1].junctions[1].right.operation.type",
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
        (ops.Attention(2, 16), False),
        (ops.Attention(2, 16, relative=ops.Relative(9)), True),
        (ops.DynamicConvolution(3, 2, 16), False),
        (ops.DynamicConvolution(3, 2, 16, ops.Relative(9)), True),
        (ops.Transform("dct", ops.RelativeAttention(2, 16, 9)), True),
        (ops.Identity(), False),
    ],
)
def test_relative_positions_are_found_in_an_operation(operation: ops.Operation, relative: bool) -> None:
    assert (operation.relative_axes > 0) is relative


def test_random_cards_and_neighbours_of_the_rules_are_legal() -> None:
    assert Card(**seq2seq(ATTENDING_CELL, NARROW, PLAIN, PLAIN)).family == "encoder-decoder"  # type: ignore[arg-type]
    assert Card(stack(DCT, INVENTED)).family == "encoder"
    assert (
        Card(stack(Block(32, ops.Transform("dft", ops.RelativeAttention(2, 16, 9))), positions="relative")).pooler
        is False
    )
    assert Card(**cell(Junction(Branch(0, ops.LightweightConvolution(3, 4), 64)))).output_width == 64  # type: ignore[arg-type]
    rng = derive(0, "cards")
    assert {random_card(rng).family for _ in range(60)} == {"encoder", "decoder", "encoder-decoder", "vision"}
    assert [place for place, _ in ATTENDING.operations] == ["mixer", "cross"]
    assert [place for place, _ in PLAIN.operations] == ["mixer"]
    assert [place for place, _ in ATTENDING_CELL.branches] == ["junctions[0].left", "junctions[0].right"]
    places = [place for place, _ in Cell(32, (Junction(DENSE), Junction(DENSE))).operations]
    assert places == ["junctions[0].left.operation", "junctions[1].left.operation"]


def test_relative_positions_have_the_axes_of_their_input() -> None:
    block = Block(32, ops.Attention(2, 16, relative=ops.Relative(6, axes=2)))
    with pytest.raises(IllegalDesign, match="need patches"):
        Card(encoder=Stack(TokenEmbedding(9, 32), (block,)))
    assert Card(encoder=Stack(PatchEmbedding(8, 4, 32), (block,))).family == "vision"
    block = Block(32, ops.DynamicConvolution(3, 2, 16, ops.Relative(6, values=True)))
    with pytest.raises(IllegalDesign, match="must have one axis and no values"):
        Card(encoder=Stack(TokenEmbedding(9, 32), (block,)))


@pytest.mark.parametrize(
    ("layer", "where"),
    [
        (Block(32, ops.LightweightConvolution(3, heads=0)), "mixer.heads"),
        (Block(-32, ops.Attention(2, 16)), "width"),
        (Block(32, ops.Attention(5000, 16)), "mixer.heads"),
        (Block(32, ops.Attention(2, 16), (64, 0)), "feed_forward[1]"),
        (Block(32, ops.Attention(2, 16, relative=ops.Relative(0))), "mixer.relative.rows"),
    ],
)
def test_sizes_of_designs_made_in_python_are_checked(layer: Block, where: str) -> None:
    with pytest.raises(IllegalDesign) as caught:
        Card(encoder=Stack(TokenEmbedding(9, layer.width), (layer,)))
    assert f"encoder.layers[0].{where}" in [fault.where for fault in caught.value.faults] or layer.width < 0


def test_layers_without_parts_and_with_too_many() -> None:
    layers = (Block(32, ops.Attention(2, 16)), Block(16, ops.Identity()), Block(32, ops.Attention(2, 16)))
    with pytest.raises(IllegalDesign) as caught:
        Card(encoder=Stack(TokenEmbedding(9, 32), layers))
    assert [fault.where for fault in caught.value.faults] == ["encoder.layers[1].width"]
    assert "keeps the width 32" in str(caught.value)
    stack = Stack(TokenEmbedding(9, 32), (Block(32, ops.Attention(2, 16), (32,) * 64),))
    assert Card(encoder=stack).encoder == stack
    with pytest.raises(IllegalDesign, match=r"layers\[0\]\.feed_forward: has 65 widths; at most 64 are allowed"):
        Card(encoder=Stack(TokenEmbedding(9, 32), (Block(32, ops.Attention(2, 16), (32,) * 65),)))
    junctions = tuple(Junction(Branch(index, ops.Identity(), 32, norm=True)) for index in range(65))
    with pytest.raises(IllegalDesign, match=r"layers\[0\]\.junctions: has 65 junctions; at most 64 are allowed"):
        Card(encoder=Stack(TokenEmbedding(9, 32), (Cell(32, junctions),)))
