"""The linear program behind a choice of one candidate for each block of a chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, linprog, milp

from formwright.search.block_paths import Floats, Indices, Level

_SCALE = 1e4  # of the largest number to minimise: the solver is content with 1e-6


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise losses or a cost over levels, within a limit on each cost (infinite: none).

    A variable for each candidate says whether it is chosen. A variable for each joint, from a width of one level to a
    width of the next, follows from them: what flows through a width is what its candidates say.
    """

    levels: Sequence[Level]
    limits: Floats

    def choice(self, goal: Floats) -> tuple[int, ...] | None:
        """Return the choice with the least sum of a goal, within the solver's tolerance; None where there is none."""
        largest = np.abs(goal).max()
        found = milp(
            goal * (_SCALE / largest if largest else 1.0),
            integrality=np.arange(len(goal)) < len(self._owners),
            bounds=(0, 1),
            constraints=[LinearConstraint(self._flows, self._totals, self._totals), *self._within],
            options={"mip_rel_gap": 0.0},
        )
        if found.x is None:
            return None
        ends = np.flatnonzero(np.diff(self._owners)) + 1
        return tuple(int(np.argmax(chosen)) for chosen in np.split(found.x[: len(self._owners)], ends))

    def prices(self) -> Floats:
        """Return what a little more of each limit is worth in losses, if candidates could be mixed."""
        found = linprog(
            self.losses, self.costs, self.limits, self._flows, self._totals, bounds=(0, 1), options={"presolve": False}
        )
        marginals: Floats = np.zeros(len(self.limits)) if found.x is None else np.maximum(-found.ineqlin.marginals, 0)
        return marginals

    @property
    def losses(self) -> Floats:
        """Give the loss of each variable, less the least of its level: so differences are not lost in rounding."""
        each = [level.losses - level.losses.min() for level in self.levels]
        return np.concatenate([*each, np.zeros(len(self._joints))])

    @property
    def costs(self) -> Floats:
        """Give the costs of each variable, (costs, variables)."""
        joints = [self.levels[upper].joints[below, above] for upper, below, above in self._joints]
        return np.concatenate([*(level.costs for level in self.levels), *(cost[np.newaxis] for cost in joints)]).T

    @property
    def _within(self) -> list[LinearConstraint]:
        return [LinearConstraint(self.costs, -np.inf, self.limits)] if len(self.limits) else []

    @cached_property
    def _joints(self) -> Indices:
        """List every joint as the number of its upper level, the width below and the width above."""
        found = [
            (upper, below, above)
            for upper, level in enumerate(self.levels)
            if upper
            for below in range(level.joints.shape[0])
            for above in range(level.joints.shape[1])
        ]
        return np.array(found, dtype=np.intp).reshape(-1, 3)

    @cached_property
    def _owners(self) -> Indices:
        """Give the level of each candidate."""
        return np.repeat(np.arange(len(self.levels)), [len(level.losses) for level in self.levels])

    @cached_property
    def _flows(self) -> Floats:
        """Sum up each level's candidates, and for each width the candidates that have it less its joints."""
        widths = np.concatenate([level.widths for level in self.levels])
        rows = [_row(self._owners == number, np.zeros(len(self._joints))) for number in range(len(self.levels))]
        for number, level in enumerate(self.levels):
            # joints with the level above hold its width below them, those with the level below hold it above them
            for upper, side in ((number + 1, 1), (number, 2)):
                if 0 < upper < len(self.levels):
                    for width in range(level.joints.shape[1]):
                        joined = (self._joints[:, 0] == upper) & (self._joints[:, side] == width)
                        rows.append(_row((self._owners == number) & (widths == width), joined))
        return np.array(rows)

    @property
    def _totals(self) -> Floats:
        return (np.arange(len(self._flows)) < len(self.levels)).astype(np.float64)


def _row(candidates: NDArray[np.bool_], joints: NDArray[Any]) -> Floats:
    return np.concatenate([candidates.astype(np.float64), -1.0 * joints])
