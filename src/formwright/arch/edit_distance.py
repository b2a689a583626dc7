"""The edit distance of designs as graphs of compute blocks (FlexiBERT, Tuli et al. 2022, section 3.3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from formwright.arch.block_order import BlockOrder
from formwright.arch.card import Card
from formwright.arch.layer_counts import UNIT, LayerCounts
from formwright.arch.layer_lists import Integers, LayerLists
from formwright.arch.manhattan import Floats, manhattan, manhattan_pairs

_CHUNK = 1 << 16  # pairs at a time


@dataclass(frozen=True)
class EditDistance:
    """Count what it takes to turn one design's graph into another's.

    A block costs its rank to insert or delete and the difference of ranks to exchange; an edge costs 0.1. The blocks'
    part is exact. Of the edges only the difference in number counts, so that the distance is never above that of the
    cheapest series of edits, and does not see in which order the layers stand; `Alignment` does.
    """

    order: BlockOrder

    @classmethod
    def of(cls, cards: Sequence[Card]) -> Self:
        """Learn from the cards of a space what its designs are made of."""
        return cls(BlockOrder.of(cards))

    def between(self, rows: Sequence[Card], columns: Sequence[Card]) -> Floats:
        """Return the distances of all rows to all columns."""
        points, weights = self._points([*rows, *columns])
        distances = manhattan(points[: len(rows)], points[len(rows) :], weights)
        distances /= UNIT
        return distances

    def pairs(self, cards: Sequence[Card], left: Integers, right: Integers) -> Floats:
        """Return the distances of `cards[left[n]]` to `cards[right[n]]` for every n."""
        points, weights = self._points(cards)
        distances = np.empty(len(left), np.float32)
        for start in range(0, len(left), _CHUNK):
            chunk = slice(start, start + _CHUNK)
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
