"""Choose one candidate for each block of a chain: the least sum of losses within limits, exactly, without training.

This is how NAS-BERT (Xu et al., 2021) finds a model for any size: blocks were trained one by one against a teacher, and
the score of a whole model is the sum of its blocks' losses.

The choice is by branch and bound, and by an integer program. A price on each cost turns limits into a lower bound: no
choice within them has a smaller loss than its loss and the price of its costs, less the price of the limits. The rest
of a partial choice is bounded by dynamic programming.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, linprog, milp

from formwright.core.errors import IllegalInput

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
_ROUNDING = 1e-9  # relative; tolerance of all comparisons
_AT_ONCE = 2_000_000  # rows processed at a time, to limit memory


@dataclass(frozen=True, eq=False)
class Level:
    """One block: the losses, costs and width (by its number) of its candidates, and the costs of each joint below."""

    losses: Floats  # (candidates,)
    costs: Floats  # (candidates, costs)
    widths: Indices  # (candidates,)
    joints: Floats  # (widths below, widths, costs)


class _PartialChoices(NamedTuple):
    """Partial choices for the lowest levels, their priced losses and their costs."""

    paths: Indices  # (choices, levels so far)
    priced: Floats  # (choices,)
    costs: Floats  # (choices, costs)

    def split(self, parts: int) -> list[_PartialChoices]:
        return [
            _PartialChoices(*some) for some in zip(*(np.array_split(column, parts) for column in self), strict=True)
        ]

    @classmethod
    def joined(cls, parts: Sequence[_PartialChoices]) -> _PartialChoices:
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
        partial = _PartialChoices(np.zeros((1, 0), dtype=np.intp), np.zeros(1), np.zeros((1, len(self.limits))))
        for level in self.levels:
            parts = partial.split(1 + len(partial.paths) * len(level.losses) // _AT_ONCE)
            partial = _PartialChoices.joined([self._extended(part, loss) for part in parts])
        return partial.paths

    def _extended(self, partial: _PartialChoices, loss: float) -> _PartialChoices:
        """Extend partial choices by one level and keep those that may still meet the limits and the loss."""
        number = partial.paths.shape[1]
        joints = self._joints_above(partial.paths)
        costs = partial.costs[:, np.newaxis] + joints + self.levels[number].costs  # (paths, candidates, costs)
        priced = partial.priced[:, np.newaxis] + joints @ self.prices + self._priced(number)
        slack = _ROUNDING * (1 + abs(loss) + self._allowance)
        small = priced + self._rest[number] <= loss + self._allowance + slack
        cheap = (costs + self._least[number] <= self.limits + _ROUNDING * np.abs(self.limits)).all(axis=2)
        path, place = np.nonzero(small & cheap)
        return _PartialChoices(np.column_stack([partial.paths[path], place]), priced[path, place], costs[path, place])

    def _joints_above(self, paths: Indices) -> Floats:
        """Return the cost of joining each candidate of the next level to each path, (paths, candidates, costs)."""
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
        """Return, for each candidate of each level, the least price of what comes above it."""
        values = [self._priced(number)[:, np.newaxis] for number in range(len(self.levels))]
        joints = [(level.joints @ self.prices)[..., np.newaxis] for level in self.levels]
        return [rest[:, 0] for rest in self._from_above(values, joints)]

    @cached_property
    def _least(self) -> list[Floats]:
        """Return, for each candidate of each level, the least of every cost that comes above it."""
        return self._from_above([level.costs for level in self.levels], [level.joints for level in self.levels])

    def _from_above(self, values: Sequence[Floats], joints: Sequence[Floats]) -> list[Floats]:
        """Sum up the least values and joints from the top down to each candidate, each kind of value by itself."""
        rest = [np.zeros_like(values[-1])]
        for number in range(len(self.levels) - 1, 0, -1):
            above = joints[number][:, self.levels[number].widths] + values[number] + rest[0]
            rest.insert(0, above.min(axis=1)[self.levels[number - 1].widths])  # of (widths below, candidates, kinds)
        return rest


_SCALE = 1e4  # of the largest number to minimise: the solver is content with 1e-6


@dataclass(frozen=True, eq=False)
class BlockProgram:
    """Minimise losses or a cost over levels, within a limit on each cost (infinite: none).

    A variable for each candidate says whether it is chosen. A variable for each joint, from a width of one level to a
    width of the next, follows from them: what flows through a width is what its candidates say.
    """

    levels: Sequence[Level]
    limits: Floats

    def choice(self, goal: Floats) -> tuple[int, ...] | None:
        """Return the choice with the least sum of a goal, within the solver's tolerance; None where there is none."""
        largest = np.abs(goal).max()
        within = [LinearConstraint(self.costs, -np.inf, self.limits)] if len(self.limits) else []
        found = milp(
            goal * (_SCALE / largest if largest else 1.0),
            integrality=np.arange(len(goal)) < len(self._owners),
            bounds=(0, 1),
            constraints=[LinearConstraint(self._flows, self._totals, self._totals), *within],
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
        """Return the loss of each variable minus the least of its level, which keeps differences exact."""
        each = [level.losses - level.losses.min() for level in self.levels]
        return np.concatenate([*each, np.zeros(len(self._joints))])

    @property
    def costs(self) -> Floats:
        """Return the costs of each variable, (costs, variables)."""
        joints = [self.levels[upper].joints[below, above] for upper, below, above in self._joints]
        return np.concatenate([*(level.costs for level in self.levels), *(cost[np.newaxis] for cost in joints)]).T

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


Joint = Callable[[int, int, int], Mapping[str, float]]


@dataclass(frozen=True)
class BlockCandidate:
    """One way to build a block: its loss, what it costs by name (such as `params` or `latency_ms`), and its width."""

    loss: float
    costs: Mapping[str, float]
    width: int = 0

    def __post_init__(self) -> None:
        wrong = [name for name, value in {"loss": self.loss, **self.costs}.items() if not isfinite(value)]
        if wrong:
            raise IllegalInput(f"the {' and the '.join(wrong)} of a block's candidate must be finite numbers.")


@dataclass(frozen=True)
class Assembly:
    """One candidate for each block, by its place in the block's table, and what they sum up to."""

    chosen: tuple[int, ...]
    loss: float
    costs: Mapping[str, float]

    def keeps(self, limits: Mapping[str, float]) -> bool:
        return all(self.costs[name] <= limit for name, limit in limits.items())


@dataclass(frozen=True)
class Blocks:
    """The tables of all blocks, lowest first, and what it costs to join a block to the one below.

    `joint` gets the number of the upper block, from 1, and the widths below and above; unnamed costs are 0. Whatever
    else a model needs, such as an embedding, is a block whose candidates have no loss.
    """

    tables: tuple[tuple[BlockCandidate, ...], ...]
    joint: Joint = lambda *_: {}

    def __post_init__(self) -> None:
        if not self.tables or not all(self.tables):
            raise IllegalInput("every block needs at least one candidate, and there must be a block.")
        names = {frozenset(candidate.costs) for table in self.tables for candidate in table}
        if len(names) > 1:
            raise IllegalInput(f"candidates cost different things: {' or '.join(sorted(map(_listed, names)))}.")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.tables[0][0].costs)

    def assembly(self, chosen: Sequence[int]) -> Assembly:
        members = [table[place] for table, place in zip(self.tables, chosen, strict=True)]
        pairs = enumerate(pairwise(members), start=1)
        joints = [self.joint(number, below.width, above.width) for number, (below, above) in pairs]
        costs = {
            name: sum(member.costs[name] for member in members) + sum(joint.get(name, 0) for joint in joints)
            for name in self.names
        }
        return Assembly(tuple(map(int, chosen)), sum(member.loss for member in members), costs)

    def best(self, limits: Mapping[str, float], top: int = 1) -> list[Assembly]:
        """Return the `top` assemblies of least loss whose costs are at most the limits, the best first.

        There may be fewer. Raise `IllegalInput` with what can be met when there is none.
        """
        self._check(limits, top)
        levels, most = self._levels(tuple(limits)), np.array([*limits.values()], dtype=np.float64)
        program = BlockProgram(levels, most)
        first = program.choice(program.losses)
        if first is None:
            raise IllegalInput(self._unmet(limits))
        # the solver keeps limits within a tolerance, the list of paths has none
        found = self._listed(Paths(levels, most, program.prices()), self.assembly(first).loss, limits, top)
        if not found:
            raise IllegalInput(self._unmet(limits))
        return found

    def refuse(self, limits: Mapping[str, float]) -> None:
        """Raise `IllegalInput` with what can be met where no assembly keeps the limits, within the solver's tolerance.

        Nothing is listed, so candidates may all have the same loss: `best` would list all assemblies, millions of them.
        """
        self._check(limits, top=1)
        program = BlockProgram(self._levels(tuple(limits)), np.array([*limits.values()], dtype=np.float64))
        if program.choice(program.losses) is None:
            raise IllegalInput(self._unmet(limits))

    def _listed(self, paths: Paths, least: float, limits: Mapping[str, float], top: int) -> list[Assembly]:
        """List all assemblies up to the least loss, and raise that until there are enough of them, or no others.

        Each step is small: lists grow with a high power of the loss, and one that is too long does not fit into memory.
        """
        extent, loss = max(least - paths.lowest, 0.0), least
        while True:
            kept = self._kept(paths.up_to(loss), loss, limits, top)
            if len(kept) >= top or loss > paths.highest:
                return sorted(kept, key=lambda one: one.loss)
            extent = 1.25 * extent + 1e-9 * (1 + abs(loss))
            loss = paths.lowest + extent

    def _kept(self, paths: Indices, loss: float, limits: Mapping[str, float], top: int) -> list[Assembly]:
        """Put the best of some choices together until `top` of them keep the limits; most are beyond the loss."""
        columns = zip(self.tables, paths.T, strict=True)
        losses = sum((np.array([one.loss for one in table])[column] for table, column in columns), np.zeros(len(paths)))
        kept = list[Assembly]()
        for place in np.argsort(losses, kind="stable"):
            if losses[place] > loss or len(kept) == top:
                break
            assembly = self.assembly(paths[place])
            kept += [assembly] if assembly.keeps(limits) else []
        return kept

    def _check(self, limits: Mapping[str, float], top: int) -> None:
        unknown = [name for name in limits if name not in self.names]
        if unknown:
            raise IllegalInput(f"candidates have no cost {' and '.join(unknown)}; they have: {_listed(self.names)}.")
        wrong = [name for name, limit in limits.items() if not isfinite(limit)]
        if wrong:
            raise IllegalInput(f"the limit on {' and on '.join(wrong)} must be a finite number.")
        if top < 1:
            raise IllegalInput(f"top is {top}; at least one assembly must be wanted.")

    def _levels(self, names: Sequence[str]) -> list[Level]:
        widths = [[0], *(sorted({candidate.width for candidate in table}) for table in self.tables)]
        levels = []
        for number, (table, below, own) in enumerate(zip(self.tables, widths[:-1], widths[1:], strict=True)):
            # nothing is below the first block
            joints = [[self.joint(number, low, high) if number else {} for high in own] for low in below]
            losses = np.array([candidate.loss for candidate in table], dtype=np.float64)
            places = np.array([own.index(candidate.width) for candidate in table], dtype=np.intp)
            costs = _array([[candidate.costs for candidate in table]], names)[0]
            levels.append(Level(losses, costs, places, _array(joints, names)))
        return levels

    def _unmet(self, limits: Mapping[str, float]) -> str:
        """Say of each limit what assemblies have, and what they have at least where the other limits are kept."""
        details = []
        for name, limit in limits.items():
            others = {other: bound for other, bound in limits.items() if other != name}
            least, most, within_others = (
                self._extreme(name, {}),
                self._extreme(name, {}, -1),
                self._extreme(name, others),
            )
            more = f", at least {within_others} within the other limits" if within_others not in ("", least) else ""
            details.append(f"{name} <= {_number(limit)} (they have {least} to {most}{more})")
        return f"no assembly of blocks keeps {' and '.join(details)}. Raise a limit."

    def _extreme(self, name: str, limits: Mapping[str, float], sign: int = 1) -> str:
        """Find the least, or for a sign of -1 the most, of a cost within limits; nothing where there is nothing."""
        program = BlockProgram(self._levels((name, *limits)), np.array([inf, *limits.values()]))
        chosen = program.choice(sign * program.costs[0])
        return "" if chosen is None else _number(self.assembly(chosen).costs[name])


def _array(costs: Sequence[Sequence[Mapping[str, float]]], names: Sequence[str]) -> Floats:
    return np.array([[[one.get(name, 0) for name in names] for one in row] for row in costs], dtype=np.float64)


def _number(value: float) -> str:
    return f"{int(value):,}" if float(value).is_integer() else f"{value:,.6g}"


def _listed(names: Sequence[str] | frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
