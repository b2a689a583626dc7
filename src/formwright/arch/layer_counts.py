"""Layers as vectors of counts, so that differences between layers are Manhattan distances.

A block costs its rank to insert or delete and the difference of ranks to exchange; an edge costs 0.1. The cheapest way
to turn one collection of blocks into another then pairs them in sorted order, and costs the sum, over all ranks r > 0,
of the difference between the numbers of blocks of rank r or more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formwright.arch.block_order import BlockOrder
from formwright.arch.compute_blocks import blocks_of
from formwright.arch.layers import Layer
from formwright.arch.manhattan import Floats
from formwright.arch.segment import segment

UNIT = 10  # costs are in tenths, so that all of them are whole numbers and all sums exact
_STEP, _EDGE = 10, 1
_ENTRY, _MEMORY = -1, -2  # stand for ranks where an edge comes from below the layer, or from the encoder


@dataclass(frozen=True, eq=False)
class LayerCounts:
    """Hold one row of counts for each layer, below a row of zeros for no layer, and the weight of each column.

    The sum of weights times the difference of counts is the cost, in tenths, of turning one layer into another.
    """

    counts: Floats
    weights: Floats

    @classmethod
    def by_number(cls, layers: Sequence[Layer], order: BlockOrder) -> LayerCounts:
        """Count blocks by their ranks, and all edges together."""
        return cls._joined(_blocks(layers, order), _edges(layers))

    @classmethod
    def by_ends(cls, layers: Sequence[Layer], order: BlockOrder) -> LayerCounts:
        """Count blocks by their ranks, and edges by the ranks of the blocks that they join."""
        return cls._joined(_blocks(layers, order), _wires(layers, order))

    @classmethod
    def _joined(cls, blocks: Floats, edges: Floats) -> LayerCounts:
        weights = np.repeat(np.array([_STEP, _EDGE], np.float32), (blocks.shape[1], edges.shape[1]))
        return cls(np.hstack((blocks, edges)), weights)

    @property
    def sizes(self) -> Floats:
        """Give the cost of adding or removing each layer."""
        sizes: Floats = self.counts @ self.weights
        return sizes


def _blocks(layers: Sequence[Layer], order: BlockOrder) -> Floats:
    """Count the blocks of rank 1 or more, 2 or more, and so on."""
    counts = np.zeros((len(layers) + 1, len(order.blocks)), np.float32)
    for row, layer in zip(counts[1:], layers, strict=True):
        for block in blocks_of(layer):
            row[order.rank(block)] += 1
    return counts[:, ::-1].cumsum(axis=1)[:, -2::-1]


def _edges(layers: Sequence[Layer]) -> Floats:
    graphs = [segment(layer) for layer in layers]
    numbers = [len(graph.edges) + sum(last for _, last in graph.reads) for graph in graphs]
    return np.array([0, *numbers], np.float32)[:, None]


def _wires(layers: Sequence[Layer], order: BlockOrder) -> Floats:
    found = [_ends(layer, order) for layer in layers]
    columns = {ends: column for column, ends in enumerate(sorted(set().union(*found)))}
    counts = np.zeros((len(layers) + 1, len(columns)), np.float32)
    for row, wires in zip(counts[1:], found, strict=True):
        for ends, number in wires.items():
            row[columns[ends]] = number
    return counts


def _ends(layer: Layer, order: BlockOrder) -> Counter[tuple[int, int]]:
    graph = segment(layer)
    ranks = [_ENTRY, *map(order.rank, blocks_of(layer))]
    wires = Counter((ranks[source], ranks[target]) for source, target, _ in graph.edges)
    for node, last in graph.reads:
        wires[_MEMORY, ranks[node]] += last
    return wires
