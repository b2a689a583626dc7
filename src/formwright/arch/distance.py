"""Distances between designs: edit distance of their graphs, alignment of their layers, and shared leading layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from formwright.arch.card import Card
from formwright.arch.compute_blocks import BlockOrder
from formwright.arch.layer_counts import UNIT, Floats, Integers, LayerCounts, LayerLists, manhattan, manhattan_pairs
from formwright.arch.layers import Layer

_PAIRS = 1 << 16  # pairs at a time
Cost = Callable[[Integers, Integers], Floats]
_PAGE = 1 << 12  # layers on either side of a table of costs
_STRIP = 32  # designs of a page that are aligned at a time, so that all data stays in the processor's cache
_ALIGNED_PAIRS = 1 << 12  # pairs at a time


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
class EditDistance:
    """The cost of turning one design's graph into another's.

    A block costs its rank to insert or delete and the difference of ranks to exchange; an edge costs 0.1. The blocks'
    part is exact. Of the edges only the difference in number counts, so that the distance is never above that of the
    cheapest series of edits, and does not see in which order the layers stand; `Alignment` does.
    """

    order: BlockOrder

    @classmethod
    def of(cls, cards: Sequence[Card]) -> Self:
        return cls(BlockOrder.of(cards))

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


@dataclass(frozen=True)
class Alignment:
    """The cost of turning one design's list of layers into another's, in order.

    A layer is turned into another, removed or added. Turning costs, as in `EditDistance`, the difference in rank of
    the compute blocks, and 0.1 for each edge that has no counterpart between blocks of the same ranks. Encoders are
    compared with encoders and decoders with decoders. The distance is never below `EditDistance`.
    """

    order: BlockOrder

    @classmethod
    def of(cls, cards: Sequence[Card]) -> Self:
        return cls(BlockOrder.of(cards))

    def between(self, rows: Sequence[Card], columns: Sequence[Card]) -> Floats:
        lists = LayerLists.of([*rows, *columns])
        layers = LayerCounts.by_ends(lists.layers, self.order)
        distances = np.zeros((len(rows), len(columns)), np.float32)
        for stack in (lists.encoders, lists.decoders):
            _add_all(distances, layers, stack[: len(rows)], stack[len(rows) :])
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


def _pair_cost(layers: LayerCounts) -> Cost:
    """Return the cost function of exchanging layers, from a table unless that would be too large."""
    counts, weights = layers.counts, layers.weights
    if len(counts) <= _PAGE:
        table = manhattan(counts, counts, weights)
        return lambda left, right: table[left, right]
    return lambda left, right: manhattan_pairs(counts[left], counts[right], weights)


def _aligned_pairs(sizes: Floats, cost: Cost, left: Integers, right: Integers) -> Floats:
    return _aligned(sizes[left], sizes[right], lambda i, j: cost(left[i], right[j]))


def _add_all(distances: Floats, layers: LayerCounts, rows: Integers, columns: Integers) -> None:
    page = max(1, _PAGE // max(1, rows.shape[1]))
    for top in range(0, len(rows), page):
        for start in range(0, len(columns), page):
            part = distances[top : top + page, start : start + page]
            _add_page(part, layers, rows[top : top + page], columns[start : start + page])


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
    for own, other in zip(_stacks(query), _stacks(neighbour), strict=False):
        for mine, theirs in zip(own, other, strict=False):
            if mine != theirs:
                return shared
            shared += 1
        if len(own) != len(other):
            return shared
    return shared


def overlap_fraction(query: Card, neighbour: Card) -> float:
    """Return the biased overlap as a share of the query's layers."""
    return biased_overlap(query, neighbour) / sum(len(layers) for layers in _stacks(query))


def _stacks(card: Card) -> list[tuple[Layer, ...]]:
    return [stack.layers if stack is not None else () for stack in (card.encoder, card.decoder)]
