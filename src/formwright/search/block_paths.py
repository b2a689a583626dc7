"""List the best choices of one candidate for each block of a chain, exactly: a search with lower bounds.

A price on each cost turns limits into a lower bound: no choice within them has a smaller loss than its loss and the
price of its costs, less the price of the limits. What remains of a choice is bounded by dynamic programming.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_ROUNDING = 1e-9  # relative; nothing is left out because of an error of this size
_AT_ONCE = 2_000_000  # choices looked at in one go, for the memory's sake


@dataclass(frozen=True, eq=False)
class Level:
    """One block: the losses, costs and width (by its number) of its candidates, and the costs of each joint below."""

    losses: Floats  # (candidates,)
    costs: Floats  # (candidates, costs)
    widths: Indices  # (candidates,)
    joints: Floats  # (widths below, widths, costs)


class _Begun(NamedTuple):
    """Choices for the lowest levels, what they come to with prices, and what they cost."""

    paths: Indices  # (choices, levels so far)
    priced: Floats  # (choices,)
    costs: Floats  # (choices, costs)

    def split(self, parts: int) -> list[_Begun]:
        return [_Begun(*some) for some in zip(*(np.array_split(column, parts) for column in self), strict=True)]

    @classmethod
    def joined(cls, parts: Sequence[_Begun]) -> _Begun:
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False)
class Paths:
    """All choices of one candidate for each level whose costs are within limits; the prices may be any, from 0."""

    levels: Sequence[Level]
    limits: Floats  # (costs,)
    prices: Floats  # (costs,)

    @cached_property
    def lowest(self) -> float:
        """Bound the loss of every choice from below."""
        return float((self._priced(0) + self._rest[0]).min()) - self._allowance

    @cached_property
    def highest(self) -> float:
        """Bound the loss of every choice from above."""
        return float(sum(level.losses.max() for level in self.levels))

    def up_to(self, loss: float) -> Indices:
        """List every choice within the limits whose loss is at most so large, (choices, levels), and some others."""
        begun = _Begun(np.zeros((1, 0), dtype=np.intp), np.zeros(1), np.zeros((1, len(self.limits))))
        for level in self.levels:
            parts = begun.split(1 + len(begun.paths) * len(level.losses) // _AT_ONCE)
            begun = _Begun.joined([self._gone_on(part, loss) for part in parts])
        return begun.paths

    def _gone_on(self, begun: _Begun, loss: float) -> _Begun:
        """Go one level up, and keep what may still end within the limits and the loss."""
        number = begun.paths.shape[1]
        joints = self._joints_above(begun.paths)
        costs = begun.costs[:, np.newaxis] + joints + self.levels[number].costs  # (paths, candidates, costs)
        priced = begun.priced[:, np.newaxis] + joints @ self.prices + self._priced(number)
        slack = _ROUNDING * (1 + abs(loss) + self._allowance)
        small = priced + self._rest[number] <= loss + self._allowance + slack
        cheap = (costs + self._least[number] <= self.limits + _ROUNDING * np.abs(self.limits)).all(axis=2)
        path, place = np.nonzero(small & cheap)
        return _Begun(np.column_stack([begun.paths[path], place]), priced[path, place], costs[path, place])

    def _joints_above(self, paths: Indices) -> Floats:
        """Give what it costs to join each candidate of the next level to each path, (paths, candidates, costs)."""
        number = paths.shape[1]
        level = self.levels[number]
        below = self.levels[number - 1].widths[paths[:, -1]] if number else np.zeros(len(paths), dtype=np.intp)
        joints: Floats = level.joints[below][:, level.widths]
        return joints

    def _priced(self, number: int) -> Floats:
        return self.levels[number].losses + self.levels[number].costs @ self.prices

    @property
    def _allowance(self) -> float:
        return float(self.prices @ self.limits)

    @cached_property
    def _rest(self) -> list[Floats]:
        """Give, for each candidate of each level, the least price of what comes above it."""
        values = [self._priced(number)[:, np.newaxis] for number in range(len(self.levels))]
        joints = [(level.joints @ self.prices)[..., np.newaxis] for level in self.levels]
        return [rest[:, 0] for rest in self._from_above(values, joints)]

    @cached_property
    def _least(self) -> list[Floats]:
        """Give, for each candidate of each level, the least of every cost that comes above it."""
        return self._from_above([level.costs for level in self.levels], [level.joints for level in self.levels])

    def _from_above(self, values: Sequence[Floats], joints: Sequence[Floats]) -> list[Floats]:
        """Sum up the least values and joints from the top down to each candidate, each kind of value by itself."""
        rest = [np.zeros_like(values[-1])]
        for number in range(len(self.levels) - 1, 0, -1):
            above = joints[number][:, self.levels[number].widths] + values[number] + rest[0]
            rest.insert(0, above.min(axis=1)[self.levels[number - 1].widths])  # of (widths below, candidates, kinds)
        return rest
