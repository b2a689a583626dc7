"""The compute blocks of a layer: graph nodes named as in published distances between designs, ordered by complexity.

They are the nodes of `formwright.arch.graph`, named more coarsely: an attention head is identified by its hidden size
and kind of score, a feed-forward layer by its width and activation, an addition by nothing else (FlexiBERT, Tuli et al.
2022, appendix B.1). Biases and position tables do not distinguish blocks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from formwright.arch.card import Card
from formwright.arch.layers import Block, Branch, Cell, Layer
from formwright.arch.ops import (
    Attention,
    Convolution,
    CrossAttention,
    DynamicConvolution,
    GatedLinearUnit,
    Identity,
    LightweightConvolution,
    Operation,
    OpGraph,
    SeparableConvolution,
    Transform,
)
from formwright.arch.primitives import BINARY, UNARY, Term
from formwright.arch.simplify import representative
from formwright.core.remember import remember


class BlockKind(IntEnum):
    """Name the kinds of compute block, the least complex first.

    FlexiBERT's kinds are in its authors' order; the others are next to those they resemble.
    """

    INPUT = 0
    OUTPUT = 1
    NORM = 2
    ADD = 3
    ADD_NORM = 4
    MULTIPLY = 5
    CONCATENATE = 6
    IDENTITY = 7
    PRIMITIVE = 8
    PROJECTION = 9
    FEED_FORWARD = 10
    DENSE = 11
    GATED_LINEAR_UNIT = 12
    TRANSFORM = 13
    ATTENTION = 14
    CROSS_ATTENTION = 15
    LIGHTWEIGHT_CONVOLUTION = 16
    SEPARABLE_CONVOLUTION = 17
    CONVOLUTION = 18
    DYNAMIC_CONVOLUTION = 19


class ComputeBlock(NamedTuple):
    """One node of a design; blocks compare by kind, then by size, so that sorting puts the least complex first."""

    kind: BlockKind
    size: tuple[int, ...] = ()
    detail: str = ""


INPUT = ComputeBlock(BlockKind.INPUT)

OUTPUT = ComputeBlock(BlockKind.OUTPUT)

_PRIMITIVES = (*UNARY, *BINARY)

_JOINTS = {"add": BlockKind.ADD, "multiply": BlockKind.MULTIPLY, "concatenate": BlockKind.CONCATENATE}


@remember
def blocks_of(layer: Layer) -> tuple[ComputeBlock, ...]:
    """List the blocks of a layer in the order of its segment's nodes, without the entry."""
    return tuple(_of_block(layer) if isinstance(layer, Block) else _of_cell(layer))


def _of_block(block: Block) -> list[ComputeBlock]:
    found: list[ComputeBlock] = []
    if not isinstance(block.mixer, Identity):
        found += _residual(block, _mixing(block.mixer, block.width))
    if block.cross is not None:
        found += _residual(block, _mixing(block.cross, block.width))
    if block.feed_forward:
        layers = [ComputeBlock(BlockKind.FEED_FORWARD, (hidden,), block.activation) for hidden in block.feed_forward]
        found += _residual(block, layers)
    return found


def _residual(block: Block, part: list[ComputeBlock]) -> list[ComputeBlock]:
    if block.norm == "post":
        return [*part, ComputeBlock(BlockKind.ADD_NORM)]
    return [ComputeBlock(BlockKind.NORM), *part, ComputeBlock(BlockKind.ADD)]


def _mixing(operation: Operation, width: int) -> list[ComputeBlock]:
    if isinstance(operation, OpGraph):
        return _of_term(operation, width)
    return [_of_operation(operation, width, width)] * _nodes(operation)


def _nodes(operation: Operation) -> int:
    if isinstance(operation, Attention | CrossAttention | DynamicConvolution):
        return operation.heads
    if isinstance(operation, Transform) and operation.relative is not None:
        return operation.relative.heads
    return 1


def _of_operation(operation: Operation, width: int, output: int, detail: str = "") -> ComputeBlock:
    kind, *own = _described(operation)
    return ComputeBlock(BlockKind(kind), (width, output, *own), detail)


def _described(operation: Operation) -> tuple[int, ...]:
    """Return the kind of an operation and, besides its widths, what orders operations of that kind by size."""
    match operation:
        case Attention(heads, head_width, score):
            return BlockKind.ATTENTION, heads * head_width, ("sdp", "wma").index(score)
        case CrossAttention(heads, head_width, layers):
            return BlockKind.CROSS_ATTENTION, heads * head_width, layers
        case Transform(transform, relative):
            inner = relative.heads * relative.head_width if relative is not None else 0
            return BlockKind.TRANSFORM, inner, ("dft", "dct").index(transform)
        case DynamicConvolution(kernel, heads, head_width):
            return BlockKind.DYNAMIC_CONVOLUTION, heads * head_width, kernel
        case SeparableConvolution(kernel, stacked):
            return BlockKind.SEPARABLE_CONVOLUTION, kernel, stacked
        case LightweightConvolution(kernel, heads, gated):
            return BlockKind.LIGHTWEIGHT_CONVOLUTION, kernel, gated, heads
        case Convolution(kernel):
            return (BlockKind.DENSE,) if kernel == 1 else (BlockKind.CONVOLUTION, kernel)
        case GatedLinearUnit():
            return (BlockKind.GATED_LINEAR_UNIT,)
        case OpGraph() | Identity():
            return (BlockKind.IDENTITY,)


def _of_term(operation: OpGraph, width: int) -> list[ComputeBlock]:
    inner = operation.heads * operation.head_width
    found: list[ComputeBlock] = []
    done: set[Term] = set()

    def visit(term: Term) -> None:
        if term in done:
            return
        done.add(term)
        if isinstance(term, str):
            found.append(ComputeBlock(BlockKind.PROJECTION, (width, inner)))
            return
        name = str(term[0])
        for operand in term[1:]:
            visit(operand)
        found.append(ComputeBlock(BlockKind.PRIMITIVE, (_PRIMITIVES.index(name), inner), name))

    visit(representative(operation.term))
    return [*found, ComputeBlock(BlockKind.PROJECTION, (inner, width))]


def _of_cell(cell: Cell) -> list[ComputeBlock]:
    found: list[ComputeBlock] = []
    for junction in cell.junctions:
        found += [_of_branch(cell, branch) for branch in junction.branches if not _plain(branch)]
        if junction.right is not None:
            found.append(ComputeBlock(_JOINTS[junction.combine]))
    return found


def _plain(branch: Branch) -> bool:
    return isinstance(branch.operation, Identity) and not branch.norm and branch.activation is None


def _of_branch(cell: Cell, branch: Branch) -> ComputeBlock:
    detail = f"{'norm' if branch.norm else 'no norm'} {branch.activation or 'no activation'}"
    return _of_operation(branch.operation, cell.state_widths[branch.input], branch.width, detail)


@dataclass(frozen=True)
class BlockOrder:
    """Hold the different compute blocks of a space, sorted by complexity; a block's rank is its index.

    For FlexiBERT these are input, output, add & norm, 2 feed-forward layers and 4 heads each of transforms,
    self-attention and convolution: 17 blocks, as in the paper. The authors' code also leaves
    gaps in rank between the kinds, which the paper does not mention; there are none here.
    """

    blocks: tuple[ComputeBlock, ...]

    @classmethod
    def of(cls, cards: Iterable[Card]) -> BlockOrder:
        """Sort the blocks of all cards of a space, or of a sample of them."""
        layers = {layer for card in cards for stack in card.stacks for layer in stack.layers}
        return cls(tuple(sorted({INPUT, OUTPUT}.union(*map(blocks_of, layers)))))

    def rank(self, block: ComputeBlock) -> int:
        """Return the index of a block; an unknown block counts as the next less complex known one."""
        return bisect_right(self.blocks, block) - 1
