"""A constraint: a named test that the card of a design must pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from formwright.arch.card import Card

_Z90 = 1.6448536269514722  # a standard normal lies within +-z with probability 90 %


@dataclass(frozen=True)
class Constraint:
    """Demand that `holds(card)` is true; the name, such as `params<=5e6`, appears in messages."""

    name: str
    holds: Callable[[Card], bool]


class Estimate(NamedTuple):
    """State an estimated number of designs with its 90 % interval."""

    estimate: int
    low: int
    high: int


def estimate_share(total: int, hits: int, samples: int) -> Estimate:
    """Estimate how many of `total` designs are hits when `hits` of `samples` uniform ones are (Wilson's interval)."""
    share = hits / samples
    spread = _Z90**2 / samples
    centre = (share + spread / 2) / (1 + spread)
    half = sqrt(spread * (share * (1 - share) + spread / 4)) / (1 + spread)
    high = 1.0 if hits == samples else centre + half  # rounding must not lead beyond all designs
    # fractions, because totals beyond the largest float are common
    return Estimate(*(round(Fraction(part) * total) for part in (share, centre - half, high)))
