"""Compute blocks: graph nodes named as in published distances between designs, ordered by complexity.

They are the nodes of `formwright.arch.graph`, named more coarsely: an attention head is identified by its hidden size
and kind of score, a feed-forward layer by its width and activation, an addition by nothing else (FlexiBERT, Tuli et al.
2022, appendix B.1). Biases and position tables do not distinguish blocks.
"""

from enum import IntEnum
from typing import NamedTuple

from formwright.arch import ops


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


def operation_block(operation: ops.Operation, width: int, output: int, detail: str = "") -> ComputeBlock:
    """Return the block of an operation, or of one of its parallel heads, from `width` to `output`."""
    kind, *own = _kind_and_size(operation)
    return ComputeBlock(BlockKind(kind), (width, output, *own), detail)


def _kind_and_size(operation: ops.Operation) -> tuple[int, ...]:
    match operation:
        case ops.Attention(heads, head_width, score):
            return BlockKind.ATTENTION, heads * head_width, ("sdp", "wma").index(score)
        case ops.CrossAttention(heads, head_width, layers):
            return BlockKind.CROSS_ATTENTION, heads * head_width, layers
        case ops.Transform(transform, relative):
            inner = relative.heads * relative.head_width if relative is not None else 0
            return BlockKind.TRANSFORM, inner, ("dft", "dct").index(transform)
        case ops.DynamicConvolution(kernel, heads, head_width):
            return BlockKind.DYNAMIC_CONVOLUTION, heads * head_width, kernel
        case ops.SeparableConvolution(kernel, stacked):
            return BlockKind.SEPARABLE_CONVOLUTION, kernel, stacked
        case ops.LightweightConvolution(kernel, heads, gated):
            return BlockKind.LIGHTWEIGHT_CONVOLUTION, kernel, gated, heads
        case ops.Convolution(kernel):
            return (BlockKind.DENSE,) if kernel == 1 else (BlockKind.CONVOLUTION, kernel)
        case ops.GatedLinearUnit():
            return (BlockKind.GATED_LINEAR_UNIT,)
        case ops.OpGraph() | ops.Identity():
            return (BlockKind.IDENTITY,)
