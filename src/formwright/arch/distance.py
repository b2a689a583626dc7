"""How far designs are from one another: what every distance offers, whichever it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

from formwright.arch.card import Card
from formwright.arch.layer_lists import Integers
from formwright.arch.manhattan import Floats


class Distance(Protocol):
    """Measure how far designs are from one another.

    A distance is symmetric, 0 from a design to itself and obeys the triangle inequality; it may be 0 between different
    designs. It is made of the cards of a space, or of a sample of them, and then measures any cards, seen or not.
    """

    @classmethod
    def of(cls, cards: Sequence[Card]) -> Self:
        """Learn from the cards of a space what its designs are made of."""

    def between(self, rows: Sequence[Card], columns: Sequence[Card]) -> Floats:
        """Return the distances of all rows to all columns; give few rows at a time where the matrix is too large."""

    def pairs(self, cards: Sequence[Card], left: Integers, right: Integers) -> Floats:
        """Return the distances of `cards[left[n]]` to `cards[right[n]]` for every n."""
