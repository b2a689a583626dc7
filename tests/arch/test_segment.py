"""The graph of one layer: a node for each part, and cuts that do not depend on how layers are divided."""

from dataclasses import replace

import pytest
from tests.arch.random_cards import random_cell, random_layer
from tests.arch.rewriting import merged, rewritten_layer, split

from formwright.arch.canonical import certificate
from formwright.arch.layers import Block, Branch, Cell, Junction, Layer
from formwright.arch.ops import (
    Attention,
    Convolution,
    CrossAttention,
    DynamicConvolution,
    Identity,
    LightweightConvolution,
    Mixer,
    OpGraph,
    Relative,
    RelativeAttention,
    SeparableConvolution,
    Transform,
)
from formwright.arch.segment import pieces, segment
from formwright.core.rng import derive

NORMED = Branch(0, Identity(), 32, norm=True)
DENSE = Branch(0, Convolution(), 32)
WIDE = Branch(0, Convolution(3), 64, activation="relu")


def block(mixer: Mixer, cross: CrossAttention | None = None) -> Block:
    return Block(32, mixer, cross=cross)


def test_a_block_after_the_norm() -> None:
    drawn = segment(Block(32, Attention(2, 16), (64, 48), "relu"))
    head = 'attention 32>32 {"head_width":16}'
    assert drawn.labels == (
        "",
        head,
        head,
        "add norm 32",
        "feed-forward 32>64 relu",
        "feed-forward 64>48 relu",
        "add norm 32",
    )
    assert set(drawn.edges) == {(0, 1, 0), (0, 2, 0), (0, 3, 0), (1, 3, 0), (2, 3, 0)} | {
        (3, 4, 0),
        (4, 5, 0),
        (5, 6, 0),
        (3, 6, 0),
    }
    assert drawn.reads == ()


def test_a_block_before_the_norm() -> None:
    drawn = segment(Block(32, Identity(), (64,), norm="pre"))
    assert drawn.labels == ("", "norm 32", "feed-forward 32>64 gelu", "add 32")
    assert set(drawn.edges) == {(0, 1, 0), (1, 2, 0), (2, 3, 0), (0, 3, 0)}


def test_cross_attention_tells_which_nodes_read_the_encoder() -> None:
    drawn = segment(Block(32, Identity(), cross=CrossAttention(2, 16, layers=3)))
    assert drawn.labels[1:3] == ('cross-attention 32>32 {"head_width":16,"layers":3}',) * 2
    assert drawn.reads == ((1, 3), (2, 3))
    cell = Cell(32, (Junction(DENSE, Branch(0, CrossAttention(2, 16, layers=2), 32)),))
    assert segment(cell).reads == ((2, 2),)


@pytest.mark.parametrize("layer", [Block(32, Identity()), Cell(32, (Junction(Branch(0, Identity(), 32)),))])
def test_identity_draws_nothing(layer: Layer) -> None:
    assert segment(layer).labels == ("",)
    assert segment(layer).edges == ()
    assert pieces(layer) == ()


@pytest.mark.parametrize(
    ("mixer", "heads"),
    [
        (Attention(3, 16), 3),
        (DynamicConvolution(3, 4, 8), 4),
        (Transform("dct", RelativeAttention(2, 16, 9)), 2),
        (Transform("dct"), 1),
        (SeparableConvolution(3), 1),
        (LightweightConvolution(3, 4), 1),
    ],
)
def test_parallel_heads_are_parallel_nodes(mixer: Mixer, heads: int) -> None:
    drawn = segment(Block(32, mixer))
    assert len(drawn.labels) == heads + 2
    assert len(set(drawn.labels[1:-1])) == 1


def test_an_op_graph_computes_common_parts_once() -> None:
    twice = ("matmul", ("cosine", ("softsign", "Q"), ("softsign", "Q")), "V")
    drawn = segment(Block(32, OpGraph(2, 8, twice)))
    assert sorted(drawn.labels) == sorted(
        ["", *["project 32>2x8"] * 2, "softsign 2x8", "cosine 2x8", "matmul 2x8", "project 2x8>32", "add norm 32"]
    )
    common, similarity = drawn.labels.index("softsign 2x8"), drawn.labels.index("cosine 2x8")
    assert [edge for edge in drawn.edges if edge[1] == similarity] == [(common, similarity, 0), (common, similarity, 1)]


def test_an_op_graph_is_drawn_simplified() -> None:
    plain = segment(block(OpGraph(2, 8, ("matmul", ("cosine", "Q", "K"), "V"))))
    assert segment(block(OpGraph(2, 8, ("neg", ("matmul", ("cosine", ("neg", "Q"), "K"), "V"))))) == plain
    assert segment(block(OpGraph(2, 8, ("neg", ("neg", "Q"))))).labels[1:3] == ("project 32>2x8", "project 2x8>32")


def test_a_cell_draws_its_branches_and_joints() -> None:
    cell = Cell(32, (Junction(DENSE, WIDE, "concatenate"), Junction(NORMED, Branch(1, Identity(), 96), "multiply")))
    drawn = segment(cell)
    assert drawn.labels == (
        "",
        "convolution 32>32 {} no norm no activation",
        'convolution 32>64 {"kernel":3} no norm relu',
        "concatenate 96",
        "identity 32>32 {} norm no activation",
        "multiply 96",
    )
    assert drawn.edges == ((0, 1, 0), (0, 2, 0), (1, 3, 0), (2, 3, 1), (0, 4, 0), (4, 5, 0), (3, 5, 0))


# (K - Q)(V - P)ᵀ, which is the same with Q for K and P for V
DIFFERENCES = ("matmul", ("add", "K", ("neg", "Q")), ("transpose", ("add", "V", ("neg", "P"))))
SAME: dict[str, tuple[Layer, Layer]] = {
    "branches of an addition": (Cell(32, (Junction(DENSE, WIDE),)), Cell(32, (Junction(WIDE, DENSE),))),
    "branches of a product": (
        Cell(32, (Junction(DENSE, WIDE, "multiply"),)),
        Cell(32, (Junction(WIDE, DENSE, "multiply"),)),
    ),
    "names of inputs": (
        block(OpGraph(1, 8, ("matmul", ("cosine", "Q", "K"), "V"))),
        block(OpGraph(1, 8, ("matmul", ("cosine", "P", "Q"), "K"))),
    ),
    "operands of an addition": (
        block(OpGraph(1, 8, ("add", "Q", ("neg", "K")))),
        block(OpGraph(1, 8, ("add", ("neg", "Q"), "K"))),
    ),
    "brackets of a sum": (
        block(OpGraph(1, 8, ("add", "Q", ("add", "K", ("softmax", "V"))))),
        block(OpGraph(1, 8, ("add", ("add", "Q", ("softmax", "V")), "K"))),
    ),
    "which of two differences is turned round, whatever the names": (
        block(OpGraph(1, 8, ("add", "Q", ("matmul", DIFFERENCES, "V")))),
        block(OpGraph(1, 8, ("add", "K", ("matmul", DIFFERENCES, "P")))),
    ),
    "order of junctions": (
        Cell(32, (Junction(DENSE), Junction(WIDE), Junction(Branch(1, Identity(), 32), Branch(2, Identity(), 64)))),
        Cell(32, (Junction(WIDE), Junction(DENSE), Junction(Branch(2, Identity(), 32), Branch(1, Identity(), 64)))),
    ),
}
ATTENTION = Block(32, Attention(2, 16), (64,))
DIFFERENT: dict[str, tuple[Layer, Layer]] = {
    "width": (ATTENTION, replace(ATTENTION, width=64)),
    "feed-forward width": (ATTENTION, replace(ATTENTION, feed_forward=(65,))),
    "feed-forward order": (replace(ATTENTION, feed_forward=(64, 48)), replace(ATTENTION, feed_forward=(48, 64))),
    "activation": (ATTENTION, replace(ATTENTION, activation="relu")),
    "norm": (ATTENTION, replace(ATTENTION, norm="pre")),
    "heads": (ATTENTION, replace(ATTENTION, mixer=Attention(3, 16))),
    "head width": (ATTENTION, replace(ATTENTION, mixer=Attention(2, 8))),
    "score": (ATTENTION, replace(ATTENTION, mixer=Attention(2, 16, "wma"))),
    "relative positions": (ATTENTION, replace(ATTENTION, mixer=Attention(2, 16, relative=Relative(9)))),
    "mixer or cross": (ATTENTION, replace(ATTENTION, mixer=Identity(), cross=CrossAttention(2, 16))),
    "memory depth": (
        block(Identity(), CrossAttention(1, 8, layers=1)),
        block(Identity(), CrossAttention(1, 8, layers=2)),
    ),
    "kernel": (block(SeparableConvolution(3)), block(SeparableConvolution(5))),
    "transform": (block(Transform("dct")), block(Transform("dft"))),
    "lightweight heads": (block(LightweightConvolution(3, 4)), block(LightweightConvolution(3, 8))),
    "order of a product": (
        block(OpGraph(1, 8, ("matmul", ("cosine", ("softsign", "Q"), "K"), "V"))),
        block(OpGraph(1, 8, ("matmul", ("cosine", "K", ("softsign", "Q")), "V"))),
    ),
    "one input or two": (
        block(OpGraph(1, 8, ("matmul", ("cosine", "Q", "K"), "V"))),
        block(OpGraph(1, 8, ("matmul", ("cosine", "Q", "K"), "Q"))),
    ),
    "order of a concatenation": (
        Cell(32, (Junction(DENSE, WIDE, "concatenate"),)),
        Cell(32, (Junction(WIDE, DENSE, "concatenate"),)),
    ),
    "combination": (Cell(32, (Junction(DENSE, WIDE),)), Cell(32, (Junction(DENSE, WIDE, "multiply"),))),
}


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_matter(name: str) -> None:
    first, second = SAME[name]
    assert first != second
    assert pieces(first) == pieces(second)


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_matters(name: str) -> None:
    first, second = DIFFERENT[name]
    assert pieces(first) != pieces(second)


def test_an_ordinary_block_is_cut_between_its_parts() -> None:
    mixer, feed_forward = pieces(ATTENTION)
    assert pieces(replace(ATTENTION, feed_forward=())) == (mixer,)
    assert pieces(replace(ATTENTION, mixer=Identity())) == (feed_forward,)


def test_pieces_do_not_depend_on_the_division_into_cells() -> None:
    rng = derive(0, "divisions")
    parted = 0
    for _ in range(200):
        cell, above = random_cell(rng, 32), random_cell(rng, 32)
        divided = split(cell, rng)
        parted += len(divided) > 1
        assert [piece for part in divided for piece in pieces(part)] == list(pieces(cell))
        assert [piece for part in merged([cell, above], rng) for piece in pieces(part)] == [
            *pieces(cell),
            *pieces(above),
        ]
    assert parted > 20


def test_pieces_do_not_depend_on_order_and_names() -> None:
    rng = derive(0, "orders")
    for _ in range(200):
        layer = random_layer(rng, 32)
        other = rewritten_layer(layer, rng)
        assert pieces(other) == pieces(layer)
        assert certificate(segment(other).labels, segment(other).edges) == certificate(
            segment(layer).labels, segment(layer).edges
        )
