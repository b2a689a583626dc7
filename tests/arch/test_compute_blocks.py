from dataclasses import replace

import pytest

from formwright.arch.compute_blocks import BlockKind, ComputeBlock
from formwright.arch.distance import BlockOrder
from formwright.arch.graph import segment
from formwright.arch.layers import Block, Branch, Cell, Junction, Layer
from formwright.arch.ops import (
    Attention,
    Convolution,
    CrossAttention,
    DynamicConvolution,
    GatedLinearUnit,
    Identity,
    LightweightConvolution,
    OpGraph,
    Relative,
    RelativeAttention,
    SeparableConvolution,
    Transform,
)
from formwright.core.rng import derive
from formwright.space.zoo import load_space

INPUT, OUTPUT = ComputeBlock(BlockKind.INPUT), ComputeBlock(BlockKind.OUTPUT)
ADD_NORM = ComputeBlock(BlockKind.ADD_NORM)


def blocks_of(layer: Layer) -> tuple[ComputeBlock, ...]:
    return segment(layer).blocks


def test_a_head_is_known_by_the_hidden_size_and_not_by_the_number_of_heads() -> None:
    block = Block(128, Attention(2, 64, "wma", Relative(9)), (512, 1024), "relu")
    head = ComputeBlock(BlockKind.ATTENTION, (128, 128, 128, 1))
    feed_forward = [
        ComputeBlock(BlockKind.FEED_FORWARD, (512,), "relu"),
        ComputeBlock(BlockKind.FEED_FORWARD, (1024,), "relu"),
    ]
    assert blocks_of(block) == (head, head, ADD_NORM, *feed_forward, ADD_NORM)
    more = replace(block, mixer=Attention(4, 32, "wma"), feed_forward=())
    assert blocks_of(more) == (head, head, head, head, ADD_NORM)


def test_norms_before_the_parts_are_blocks_of_their_own() -> None:
    block = Block(16, Transform("dct"), norm="pre", cross=CrossAttention(1, 8, 2))
    assert blocks_of(block) == (
        ComputeBlock(BlockKind.NORM),
        ComputeBlock(BlockKind.TRANSFORM, (16, 16, 0, 1)),
        ComputeBlock(BlockKind.ADD),
        ComputeBlock(BlockKind.NORM),
        ComputeBlock(BlockKind.CROSS_ATTENTION, (16, 16, 8, 2)),
        ComputeBlock(BlockKind.ADD),
    )


def test_the_primitives_of_an_attention_are_blocks_and_a_common_part_is_one() -> None:
    graph = OpGraph(2, 8, ("matmul", ("softmax", ("matmul", "Q", ("transpose", "Q"))), "V"))
    names = [block.detail or block.kind.name for block in blocks_of(Block(16, graph))]
    assert names == [
        *("PROJECTION", "transpose", "matmul", "softmax", "PROJECTION", "matmul", "PROJECTION"),
        "ADD_NORM",
    ]


def test_a_cell_has_a_block_for_each_branch_and_joint() -> None:
    swish = Branch(0, Convolution(1), 32, norm=True, activation="swish")
    cell = Cell(16, (Junction(swish, Branch(0, Identity(), 16), "concatenate"), Junction(Branch(1, Convolution(3), 8))))
    assert blocks_of(cell) == (
        ComputeBlock(BlockKind.DENSE, (16, 32), "norm swish"),
        ComputeBlock(BlockKind.CONCATENATE),
        ComputeBlock(BlockKind.CONVOLUTION, (48, 8, 3), "no norm no activation"),
    )


def mixed(*mixers: object) -> list[ComputeBlock]:
    return [blocks_of(Block(16, mixer))[0] for mixer in mixers]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "blocks",
    [
        mixed(Attention(2, 8), Attention(2, 8, "wma"), DynamicConvolution(5, 2, 8), DynamicConvolution(11, 2, 8)),
        mixed(Transform("dft"), Transform("dct"), Transform("dft", RelativeAttention(2, 8, 9)), Attention(1, 1)),
        mixed(Attention(2, 4), Attention(2, 5), LightweightConvolution(3, 2), LightweightConvolution(31, 1)),
        mixed(SeparableConvolution(3, 1), SeparableConvolution(3, 2), SeparableConvolution(5, 1)),
        [
            blocks_of(Cell(16, (Junction(Branch(0, operation, 16, norm=True)),)))[0]
            for operation in (Identity(), Convolution(1), GatedLinearUnit(), Convolution(3), Convolution(15))
        ],
    ],
)
def test_blocks_sort_by_complexity(blocks: list[ComputeBlock]) -> None:
    assert sorted(blocks) == blocks
    assert len(set(blocks)) == len(blocks)


def heads(kind: BlockKind, widths: tuple[int, int], options: tuple[int, int]) -> list[ComputeBlock]:
    return [ComputeBlock(kind, (width, width, width, option)) for width in widths for option in options]


@pytest.mark.parametrize(
    ("name", "widths", "feed_forward"),
    [
        ("flexibert", (128, 256), (512, 1024)),
        ("flexibert-s1star", (128, 256), (512, 1024)),
        ("flexibert-nano", (32, 64), (64, 128)),
    ],
)
def test_the_order_is_that_of_flexiberts_authors(name, widths, feed_forward) -> None:
    space, rng = load_space(name), derive(0, "order")
    order = BlockOrder.of([space.card(space.sample(rng)) for _ in range(200)])
    assert order.blocks == (
        INPUT,
        OUTPUT,
        ComputeBlock(BlockKind.ADD_NORM),
        *(ComputeBlock(BlockKind.FEED_FORWARD, (width,), "gelu") for width in feed_forward),
        *heads(BlockKind.TRANSFORM, widths, (0, 1)),  # dft, dct
        *heads(BlockKind.ATTENTION, widths, (0, 1)),  # sdp, wma
        *heads(BlockKind.DYNAMIC_CONVOLUTION, widths, (5, 9)),
    )
    assert [order.rank(block) for block in order.blocks] == list(range(17))


def test_unknown_and_missing_blocks() -> None:
    assert blocks_of(Block(16, Identity())) == ()
    known = tuple(ComputeBlock(BlockKind.FEED_FORWARD, (width,), "gelu") for width in (64, 128))
    order = BlockOrder((INPUT, OUTPUT, *known))
    assert order.rank(ComputeBlock(BlockKind.FEED_FORWARD, (100,), "gelu")) == order.rank(known[0]) == 2
    assert order.rank(ComputeBlock(BlockKind.ATTENTION, (9, 9, 9, 0))) == order.rank(known[1]) == 3
    assert order.rank(ComputeBlock(BlockKind.ADD_NORM)) == order.rank(OUTPUT) == 1
    assert BlockOrder.of([]).blocks == (INPUT, OUTPUT)
