"""Layers as vectors of counts, so that differences between layers are weighted Manhattan distances.

A block costs its rank to insert or delete and the difference of ranks to exchange; an edge costs 0.1. The cheapest way
to turn one collection of blocks into another then pairs them in sorted order, and costs the sum, over all ranks r > 0,
of the difference between the numbers of blocks of rank r or more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.arch.compute_blocks import BlockOrder, blocks_of
from formwright.arch.graph import segment
from formwright.arch.layers import Layer, Stack

Floats = NDArray[np.float32]
_STRIP = 512  # rows at a time, to bound the memory of intermediate results
Integers = NDArray[np.intp]
UNIT = 10  # costs are in tenths, so that all of them are whole numbers and all sums exact
_STEP, _EDGE = 10, 1
_ENTRY, _MEMORY = -1, -2  # in place of a rank: the edge comes from below the layer, or from the encoder


def manhattan(rows: Floats, columns: Floats, weights: Floats) -> Floats:
    """Return sum(weights * |row - column|) for each row against each column.

    Counts and weights are whole and not negative; the result is exact where the sums stay below 2**24.
    """
    result = np.zeros((len(rows), len(columns)), np.float32)
    if result.size == 0:
        return result
    # |a - b| = a + b - 2 min(a, b), and min(a, b) counts the levels that both reach: a product of zeros and ones
    low, place, level = _levels(rows, columns)
    reached = (columns[:, place] >= level).astype(np.float32)
    for start in range(0, len(rows), _STRIP):
        strip, part = rows[start : start + _STRIP], result[start : start + _STRIP]
        np.matmul((strip[:, place] >= level) * (-2 * weights[place]), reached.T, out=part)
        part += ((strip - low) @ weights)[:, None]
        part += (columns - low) @ weights
    return result


def manhattan_pairs(left: Floats, right: Floats, weights: Floats) -> Floats:
    """Return sum(weights * |left - right|) for each row of both."""
    difference = left - right
    distances: Floats = np.abs(difference, out=difference) @ weights
    return distances


def _levels(rows: Floats, columns: Floats) -> tuple[Floats, NDArray[np.intp], Floats]:
    """Return the counts that all vectors reach, then column and number of each level above that both may reach."""
    low: Floats = np.minimum(rows.min(axis=0), columns.min(axis=0))
    high = np.minimum(rows.max(axis=0), columns.max(axis=0))
    steps = (high - low).astype(np.intp)
    place = np.repeat(np.arange(len(steps)), steps)
    first = np.cumsum(steps) - steps
    return low, place, low[place] + (np.arange(len(place)) - first[place] + 1).astype(np.float32)


@dataclass(frozen=True, eq=False)
class LayerLists:
    """Hold different layers and, for encoders and decoders, an array (designs, depth) of numbers.

    The number n stands for `layers[n - 1]`, and 0, at the end of a list, for no layer: lists of unequal length, or of
    designs without such a stack, are filled up with it.
    """

    layers: tuple[Layer, ...]
    encoders: Integers
    decoders: Integers

    @classmethod
    def of(cls, cards: Sequence[Card]) -> LayerLists:
        numbers: dict[Layer, int] = {}
        encoders = _filled([_numbered(card.encoder, numbers) for card in cards])
        decoders = _filled([_numbered(card.decoder, numbers) for card in cards])
        return cls(tuple(numbers), encoders, decoders)


def _numbered(stack: Stack | None, numbers: dict[Layer, int]) -> list[int]:
    return [numbers.setdefault(layer, len(numbers) + 1) for layer in stack.layers] if stack is not None else []


def _filled(lists: list[list[int]]) -> Integers:
    depth = max(map(len, lists), default=0)
    return np.array([numbers + [0] * (depth - len(numbers)) for numbers in lists], np.intp).reshape(len(lists), depth)


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
        """Count blocks by their ranks, and edges by the ranks of the blocks that they connect."""
        return cls._joined(_blocks(layers, order), _wires(layers, order))

    @classmethod
    def _joined(cls, blocks: Floats, edges: Floats) -> LayerCounts:
        weights = np.repeat(np.array([_STEP, _EDGE], np.float32), (blocks.shape[1], edges.shape[1]))
        return cls(np.hstack((blocks, edges)), weights)

    @property
    def sizes(self) -> Floats:
        """Return the cost of adding or removing each layer."""
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
