"""Distances between designs: edit distance of their graphs, alignment of their layers, and shared leading layers.

A block costs its rank to insert or delete and the difference of ranks to exchange; an edge costs 0.1. The cheapest way
to turn one collection of blocks into another then pairs them in sorted order, and costs the sum, over all ranks r > 0,
of the difference between the numbers of blocks of rank r or more. So layers are vectors of counts, and the differences
between them are weighted Manhattan distances.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.arch.compute_blocks import BlockKind, ComputeBlock
from formwright.arch.graph import segment
from formwright.arch.layers import Layer, Stack

Floats = NDArray[np.float32]
Integers = NDArray[np.intp]
UNIT = 10  # costs are in tenths, so that all of them are whole numbers and all sums exact
_STEP, _EDGE = 10, 1
_ENTRY, _MEMORY = -1, -2  # in place of a rank: the edge comes from below the layer, or from the encoder
# how much is done at a time, to bound the memory of intermediate results
_ROWS = 512
_PAIRS = 1 << 16
_PAGE = 1 << 12  # layers on either side of a table of costs
_STRIP = 32  # designs of a page that are aligned at a time, so that all data stays in the processor's cache
_ALIGNED_PAIRS = 1 << 12


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
        ends = {ComputeBlock(BlockKind.INPUT), ComputeBlock(BlockKind.OUTPUT)}
        return cls(tuple(sorted(ends.union(*(segment(layer).blocks for layer in layers)))))

    def rank(self, block: ComputeBlock) -> int:
        """Return the index of a block; an unknown block counts as the next less complex known one."""
        return bisect_right(self.blocks, block) - 1


def manhattan(rows: Floats, columns: Floats, weights: Floats) -> Floats:
    """Return sum(weights * |row - column|) for each row against each column.

    Counts and weights are whole and not negative; the result is exact where the sums stay below 2**24.
    """
    result = np.zeros((len(rows), len(columns)), np.float32)
    if result.size == 0:
        return result
    # |a - b| = a + b - 2 min(a, b), and min(a, b) counts the levels that both reach: a product of zeros and ones
    low: Floats = np.minimum(rows.min(axis=0), columns.min(axis=0))  # the counts that all vectors reach
    steps = (np.minimum(rows.max(axis=0), columns.max(axis=0)) - low).astype(np.intp)
    place = np.repeat(np.arange(len(steps)), steps)  # the column of each level above that both may reach
    level = low[place] + (np.arange(len(place)) - (np.cumsum(steps) - steps)[place] + 1).astype(np.float32)
    reached = (columns[:, place] >= level).astype(np.float32)
    for start in range(0, len(rows), _ROWS):
        strip, part = rows[start : start + _ROWS], result[start : start + _ROWS]
        np.matmul((strip[:, place] >= level) * (-2 * weights[place]), reached.T, out=part)
        part += ((strip - low) @ weights)[:, None]
        part += (columns - low) @ weights
    return result


def manhattan_pairs(left: Floats, right: Floats, weights: Floats) -> Floats:
    """Return sum(weights * |left - right|) for each row of both."""
    difference = left - right
    distances: Floats = np.abs(difference, out=difference) @ weights
    return distances


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

        def numbered(stacks: Iterable[Stack | None]) -> Integers:
            layers = [stack.layers if stack is not None else () for stack in stacks]
            table = np.zeros((len(layers), max(map(len, layers), default=0)), np.intp)
            for row, own in zip(table, layers, strict=True):
                row[: len(own)] = [numbers.setdefault(layer, len(numbers) + 1) for layer in own]
            return table

        encoders, decoders = numbered(card.encoder for card in cards), numbered(card.decoder for card in cards)
        return cls(tuple(numbers), encoders, decoders)


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
        graphs = [segment(layer) for layer in layers]
        numbers = [len(graph.edges) + sum(last for _, last in graph.reads) for graph in graphs]
        return cls._joined(layers, order, np.array([0, *numbers], np.float32)[:, None])

    @classmethod
    def by_ends(cls, layers: Sequence[Layer], order: BlockOrder) -> LayerCounts:
        """Count blocks by their ranks, and edges by the ranks of the blocks that they connect."""
        found = [_edge_ends(layer, order) for layer in layers]
        columns = {ends: column for column, ends in enumerate(sorted(set().union(*found)))}
        edges = np.zeros((len(layers) + 1, len(columns)), np.float32)
        for row, counted in zip(edges[1:], found, strict=True):
            for ends, number in counted.items():
                row[columns[ends]] = number
        return cls._joined(layers, order, edges)

    @classmethod
    def _joined(cls, layers: Sequence[Layer], order: BlockOrder, edges: Floats) -> LayerCounts:
        ranks = np.zeros((len(layers) + 1, len(order.blocks)), np.float32)
        for row, layer in zip(ranks[1:], layers, strict=True):
            for block in segment(layer).blocks:
                row[order.rank(block)] += 1
        blocks = ranks[:, ::-1].cumsum(axis=1)[:, -2::-1]  # of rank 1 or more, 2 or more, and so on
        weights = np.repeat(np.array([_STEP, _EDGE], np.float32), (blocks.shape[1], edges.shape[1]))
        return cls(np.hstack((blocks, edges)), weights)

    @property
    def sizes(self) -> Floats:
        """Return the cost of adding or removing each layer."""
        sizes: Floats = self.counts @ self.weights
        return sizes


def _edge_ends(layer: Layer, order: BlockOrder) -> Counter[tuple[int, int]]:
    graph = segment(layer)
    ranks = [_ENTRY, *map(order.rank, graph.blocks)]
    ends = Counter((ranks[source], ranks[target]) for source, target, _ in graph.edges)
    for node, last in graph.reads:
        ends[_MEMORY, ranks[node]] += last
    return ends


class Distance(Protocol):
    """Measure how far designs are from one another.

    A distance is symmetric, 0 from a design to itself and obeys the triangle inequality; it may be 0 between different
    designs. It is fitted to the cards of a space, or to a sample of them, and then measures any cards.
    """

    @classmethod
    def of(cls, cards: Sequence[Card]) -> Self:
        """Fit the distance to the cards of a space."""

    def between(self, rows: Sequence[Card], columns: Sequence[Card]) -> Floats:
        """Return the distances of all rows to all columns; pass few rows at a time if the matrix is too large."""

    def pairs(self, cards: Sequence[Card], left: Integers, right: Integers) -> Floats:
        """Return the distances of `cards[left[n]]` to `cards[right[n]]` for every n."""


@dataclass(frozen=True)
class _ByRank:
    order: BlockOrder

    @classmethod
    def of(cls, cards: Sequence[Card]) -> Self:
        return cls(BlockOrder.of(cards))


class EditDistance(_ByRank):
    """The cost of turning one design's graph into another's.

    A block costs its rank to insert or delete and the difference of ranks to exchange; an edge costs 0.1. The blocks'
    part is exact. Of the edges only the difference in number counts, so that the distance is never above that of the
    cheapest series of edits, and does not see in which order the layers stand; `Alignment` does.
    """

    def between(self, rows: Sequence[Card], columns: Sequence[Card]) -> Floats:
        points, weights = self._points([*rows, *columns])
        distances = manhattan(points[: len(rows)], points[len(rows) :], weights)
        distances /= UNIT
        return distances

    def pairs(self, cards: Sequence[Card], left: Integers, right: Integers) -> Floats:
        points, weights = self._points(cards)
        distances = np.empty(len(left), np.float32)
        for start in range(0, len(left), _PAIRS):
            chunk = slice(start, start + _PAIRS)
            distances[chunk] = manhattan_pairs(points[left[chunk]], points[right[chunk]], weights)
        distances /= UNIT
        return distances

    def _points(self, cards: Sequence[Card]) -> tuple[Floats, Floats]:
        # inputs have rank 0, and each design has one output with one edge to it: only layers make a difference
        lists = LayerLists.of(cards)
        layers = LayerCounts.by_number(lists.layers, self.order)
        points = np.zeros((len(cards), len(layers.weights)), np.float32)
        for numbers in (*lists.encoders.T, *lists.decoders.T):
            points += layers.counts[numbers]
        return points, layers.weights


class Alignment(_ByRank):
    """The cost of turning one design's list of layers into another's, in order.

    A layer is turned into another, removed or added. Turning costs, as in `EditDistance`, the difference in rank of
    the compute blocks, and 0.1 for each edge that has no counterpart between blocks of the same ranks. Encoders are
    compared with encoders and decoders with decoders. The distance is never below `EditDistance`.
    """

    def between(self, rows: Sequence[Card], columns: Sequence[Card]) -> Floats:
        lists = LayerLists.of([*rows, *columns])
        layers = LayerCounts.by_ends(lists.layers, self.order)
        distances = np.zeros((len(rows), len(columns)), np.float32)
        for stack in (lists.encoders, lists.decoders):
            page = max(1, _PAGE // max(1, stack.shape[1]))
            for top in range(0, len(rows), page):
                for start in range(0, len(columns), page):
                    here = slice(top, top + page), slice(start, start + page)
                    _add_page(distances[here], layers, stack[: len(rows)][here[0]], stack[len(rows) :][here[1]])
        distances /= UNIT
        return distances

    def pairs(self, cards: Sequence[Card], left: Integers, right: Integers) -> Floats:
        lists = LayerLists.of(cards)
        layers = LayerCounts.by_ends(lists.layers, self.order)
        cost, sizes = _pair_cost(layers), layers.sizes
        distances = np.zeros(len(left), np.float32)
        for stack in (lists.encoders, lists.decoders):
            for start in range(0, len(left), _ALIGNED_PAIRS):
                chunk = slice(start, start + _ALIGNED_PAIRS)
                distances[chunk] += _aligned_pairs(sizes, cost, stack[left[chunk]].T, stack[right[chunk]].T)
        distances /= UNIT
        return distances


Cost = Callable[[Integers, Integers], Floats]


def _pair_cost(layers: LayerCounts) -> Cost:
    """Return the cost function of exchanging layers, from a table unless that would be too large."""
    counts, weights = layers.counts, layers.weights
    if len(counts) <= _PAGE:
        table = manhattan(counts, counts, weights)
        return lambda left, right: table[left, right]
    return lambda left, right: manhattan_pairs(counts[left], counts[right], weights)


def _aligned_pairs(sizes: Floats, cost: Cost, left: Integers, right: Integers) -> Floats:
    return _aligned(sizes[left], sizes[right], lambda i, j: cost(left[i], right[j]))


def _add_page(distances: Floats, layers: LayerCounts, rows: Integers, columns: Integers) -> None:
    """Add the costs of aligning each row with each column, from one table of their distinct layers."""
    sizes, (upper, row_numbers), (lower, column_numbers) = layers.sizes, _different(rows), _different(columns)
    table = manhattan(layers.counts[upper], layers.counts[lower], layers.weights)
    tables = [table[:, numbers] for numbers in column_numbers.T]
    across = sizes[columns].T[:, None, :]
    for start in range(0, len(rows), _STRIP):
        strip = slice(start, start + _STRIP)
        distances[strip] += _aligned_strip(sizes[rows[strip]].T[:, :, None], across, tables, row_numbers[strip].T)


def _aligned_strip(left: Floats, right: Floats, tables: Sequence[Floats], rows: Integers) -> Floats:
    return _aligned(left, right, lambda i, j: tables[j][rows[i]])


def _different(numbers: Integers) -> tuple[Integers, Integers]:
    found, inverse = np.unique(numbers, return_inverse=True)
    return found, inverse.reshape(numbers.shape)


def _aligned(left: Floats, right: Floats, cost: Callable[[int, int], Floats]) -> Floats:
    """Align lists of layers, many at once: `left[i]` and `right[j]` are what layers cost to remove or add.

    `cost(i, j)` gives new arrays of what it costs to turn layers i of the left into layers j of the right. Numbers that
    stand for no layer cost nothing to remove, so lists of unequal length may be filled up with them.
    """
    row: list[Floats] = [np.zeros((), np.float32), *np.cumsum(right, axis=0)]
    for i, removed in enumerate(left):
        above, row = row, [row[0] + removed]
        for j, added in enumerate(right):
            best = cost(i, j)
            best += above[j]
            np.minimum(best, above[j + 1] + removed, out=best)
            np.minimum(best, row[j] + added, out=best)
            row.append(best)
    return row[-1]


def biased_overlap(query: Card, neighbour: Card) -> int:
    """Count the leading layers that two designs share exactly; counting stops at the first that differs.

    Layers of an encoder come before those of a decoder, which count only when the whole encoder is shared.
    """
    shared = 0
    for own, other in zip(_stacks(query), _stacks(neighbour), strict=True):
        for mine, theirs in zip(own, other, strict=False):
            if mine != theirs:
                return shared
            shared += 1
        if len(own) != len(other):
            break
    return shared


def overlap_fraction(query: Card, neighbour: Card) -> float:
    return biased_overlap(query, neighbour) / sum(len(layers) for layers in _stacks(query))


def _stacks(card: Card) -> list[tuple[Layer, ...]]:
    return [stack.layers if stack is not None else () for stack in (card.encoder, card.decoder)]
