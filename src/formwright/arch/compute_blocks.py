"""Compute blocks: graph nodes named as in published distances between designs, ordered by complexity.

They are the nodes of `formwright.arch.graph`, named more coarsely: an attention head is identified by its hidden size
and kind of score, a feed-forward layer by its width and activation, an addition by nothing else (FlexiBERT, Tuli et al.
2022, appendix B.1). Biases and position tables do not distinguish blocks.
"""

from enum import IntEnum
from typing import NamedTuple

Edge = tuple[int, int, int]  # from, to, and the operand's place at the target (0 where order does not matter)


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
    OTHER = 20  # of other packages, unless they choose one of these kinds


class ComputeBlock(NamedTuple):
    """One node of a design; blocks compare by kind, then by size, so that sorting puts the least complex first."""

    kind: BlockKind
    size: tuple[int, ...] = ()
    detail: str = ""


class Drawing:
    """Collect the nodes and edges of a layer's graph in topological order; node 0 is the layer's input."""

    def __init__(self) -> None:
        self.labels = [""]
        self.blocks: list[ComputeBlock] = []
        self.edges: list[Edge] = []
        self.reads: list[tuple[int, int]] = []

    def node(self, label: str, block: ComputeBlock, *sources: int, ordered: bool = False) -> int:
        """Add a node that reads `sources`; if `ordered`, the order of the sources matters."""
        here = len(self.labels)
        self.labels.append(label)
        self.blocks.append(block)
        self.edges += [(source, here, place if ordered else 0) for place, source in enumerate(sources)]
        return here

    def read(self, nodes: list[int], layers: int) -> None:
        """Let nodes read the last `layers` of the encoder, if any."""
        self.reads += [(node, layers) for node in nodes if layers]
