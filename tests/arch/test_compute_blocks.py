from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.arch.random_cards import random_card

from formwright.arch.card import Card
from formwright.arch.compute_blocks import ComputeBlock, Kind, blocks_of
from formwright.arch.layers import Block, Branch, Cell, Junction
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
from formwright.arch.segment import segment
from formwright.core.rng import derive
from formwright.space.zoo import load_card

ADD_NORM = ComputeBlock(Kind.ADD_NORM)
WORDS = {
    "add norm": Kind.ADD_NORM,
    "add": Kind.ADD,
    "norm": Kind.NORM,
    "multiply": Kind.MULTIPLY,
    "concatenate": Kind.CONCATENATE,
    "identity": Kind.IDENTITY,
    "project": Kind.PROJECTION,
    "feed-forward": Kind.FEED_FORWARD,
    "gated-linear-unit": Kind.GATED_LINEAR_UNIT,
    "transform": Kind.TRANSFORM,
    "attention": Kind.ATTENTION,
    "cross-attention": Kind.CROSS_ATTENTION,
    "lightweight-convolution": Kind.LIGHTWEIGHT_CONVOLUTION,
    "separable-convolution": Kind.SEPARABLE_CONVOLUTION,
    "dynamic-convolution": Kind.DYNAMIC_CONVOLUTION,
}


def kinds_of_label(label: str, primitive: bool) -> set[Kind]:
    """Say which kinds a node of a segment may be, from the words its label begins with."""
    first, *rest = label.split(" ")
    if primitive:
        return {Kind.PRIMITIVE}
    if first == "convolution":
        return {Kind.DENSE, Kind.CONVOLUTION}
    return {WORDS["add norm" if first == "add" and rest[0] == "norm" else first]}


@given(st.integers(0, 10**9))
def test_blocks_are_the_nodes_of_the_segment_in_its_order(seed: int) -> None:
    card = random_card(derive(seed, "blocks"))
    for stack in card.stacks:
        for layer in stack.layers:
            labels, blocks = segment(layer).labels[1:], blocks_of(layer)
            assert len(labels) == len(blocks)
            for label, block in zip(labels, blocks, strict=True):
                assert block.kind in kinds_of_label(label, block.kind is Kind.PRIMITIVE)
                assert block.kind is not Kind.PRIMITIVE or block.detail == label.split(" ")[0]


def test_a_head_is_known_by_the_hidden_size_and_not_by_the_number_of_heads() -> None:
    block = Block(128, Attention(2, 64, "wma", Relative(9)), (512, 1024), "relu")
    head = ComputeBlock(Kind.ATTENTION, (128, 128, 128, 1))
    feed_forward = [ComputeBlock(Kind.FEED_FORWARD, (512,), "relu"), ComputeBlock(Kind.FEED_FORWARD, (1024,), "relu")]
    assert blocks_of(block) == (head, head, ADD_NORM, *feed_forward, ADD_NORM)
    more = replace(block, mixer=Attention(4, 32, "wma"), feed_forward=())
    assert blocks_of(more) == (head, head, head, head, ADD_NORM)


def test_norms_before_the_parts_are_blocks_of_their_own() -> None:
    block = Block(16, Transform("dct"), norm="pre", cross=CrossAttention(1, 8, 2))
    assert blocks_of(block) == (
        ComputeBlock(Kind.NORM),
        ComputeBlock(Kind.TRANSFORM, (16, 16, 0, 1)),
        ComputeBlock(Kind.ADD),
        ComputeBlock(Kind.NORM),
        ComputeBlock(Kind.CROSS_ATTENTION, (16, 16, 8, 2)),
        ComputeBlock(Kind.ADD),
    )


def test_an_empty_layer_has_no_block() -> None:
    assert blocks_of(Block(16, Identity())) == ()


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
        ComputeBlock(Kind.DENSE, (16, 32), "norm swish"),
        ComputeBlock(Kind.CONCATENATE),
        ComputeBlock(Kind.CONVOLUTION, (48, 8, 3), "no norm no activation"),
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


@pytest.mark.parametrize("name", ["eftnas-s1-mnli", "evolved-transformer-base", "bert-tiny", "autoformer-t"])
def test_published_designs_have_blocks(name: str) -> None:
    card: Card = load_card(name)
    for stack in card.stacks:
        assert all(len(blocks_of(layer)) == len(segment(layer).labels) - 1 > 0 for layer in stack.layers)
