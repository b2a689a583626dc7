"""A distance of designs that knows the order of their layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from formwright.arch.block_order import BlockOrder
from formwright.arch.card import Card
from formwright.arch.layer_counts import UNIT, LayerCounts
from formwright.arch.layer_lists import Integers, LayerLists
from formwright.arch.manhattan import Floats, manhattan, manhattan_pairs

Cost = Callable[[Integers, Integers], Floats]

_PAGE = 1 << 12  # layers on either side of a table of costs
_STRIP = 32  # designs of a page that are aligned at a time, so that all they need stays in the processor's cache
_CHUNK = 1 << 12  # pairs at a time


@dataclass(frozen=True)
class Alignment:
    """Count what it takes to turn one design's list of layers into another's, in order.

    A layer is turned into another, removed or added. Turning costs, as in `EditDistance`, the difference in rank of
    the compute blocks, and 0.1 for each edge that has no counterpart between blocks of the same ranks. Encoders are
    compared with encoders and decoders with decoders. The distance is never below `EditDistance`.
    """

    order: BlockOrder

    @classmethod
    def of(cls, cards: Sequence[Card]) -> Self:
        """Learn from the cards of a space what its designs are made of."""
        return cls(BlockOrder.of(cards))

    def between(self, rows: Sequence[Card], columns: Sequence[Card]) -> Floats:
        """Return the distances of all rows to all columns."""
        lists = LayerLists.of([*rows, *columns])
        layers = LayerCounts.by_ends(lists.layers, self.order)
        distances = np.zeros((len(rows), len(columns)), np.float32)
        for stack in (lists.encoders, lists.decoders):
            _add_all(distances, layers, stack[: len(rows)], stack[len(rows) :])
        distances /= UNIT
        return distances

    def pairs(self, cards: Sequence[Card], left: Integers, right: Integers) -> Floats:
        """Return the distances of `cards[left[n]]` to `cards[right[n]]` for every n."""
        lists = LayerLists.of(cards)
        layers = LayerCounts.by_ends(lists.layers, self.order)
        cost, sizes = _pair_cost(layers), layers.sizes
        distances = np.zeros(len(left), np.float32)
        for stack in (lists.encoders, lists.decoders):
            for start in range(0, len(left), _CHUNK):
                chunk = slice(start, start + _CHUNK)
                distances[chunk] += _aligned_pairs(sizes, cost, stack[left[chunk]].T, stack[right[chunk]].T)
        distances /= UNIT
        return distances


def _pair_cost(layers: LayerCounts) -> Cost:
    """Say what turning one layer into another costs, from a table where it does not become too large."""
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
    """Add the costs of aligning each row with each column, from one table of their different layers."""
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
