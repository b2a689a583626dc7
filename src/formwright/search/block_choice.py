"""Choose one candidate for each block of a chain: the least sum of losses within limits, exactly, without training.

This is how NAS-BERT (Xu et al., 2021) finds a model for any size: blocks were trained one by one against a teacher, and
the score of a whole model is the sum of its blocks' losses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formwright.core.errors import IllegalInput
from formwright.search.block_solver import BlockProgram, Floats, Indices, Level, Paths

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


def no_joint(block: int, below: int, above: int) -> Mapping[str, float]:
    return {}


@dataclass(frozen=True)
class Blocks:
    """The tables of all blocks, lowest first, and what it costs to join a block to the one below.

    `joint` gets the number of the upper block, from 1, and the widths below and above; unnamed costs are 0. Whatever
    else a model needs, such as an embedding, is a block whose candidates have no loss.
    """

    tables: tuple[tuple[BlockCandidate, ...], ...]
    joint: Joint = no_joint

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
        told = []
        for name, limit in limits.items():
            others = {other: bound for other, bound in limits.items() if other != name}
            least, most, beside = self._extreme(name, {}), self._extreme(name, {}, -1), self._extreme(name, others)
            more = f", at least {beside} within the other limits" if beside not in ("", least) else ""
            told.append(f"{name} <= {_number(limit)} (they have {least} to {most}{more})")
        return f"no assembly of blocks keeps {' and '.join(told)}. Raise a limit."

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


Mask = NDArray[np.bool_]

# NAS-BERT (Xu et al., 2021) halves every bin of similar costs until ten candidates are left in each of ten bins; bins
# by size and latency, and halving by validation loss, are known second-hand. Decided here: a bin is a cell of a grid
# whose axes are cut into equal parts; candidates that were not evaluated stay; of an odd number the middle one stays.
BINS, LEAST = 10, 10


def bins(costs: ArrayLike, parts: int = BINS) -> Indices:
    """Return the bin of each candidate, numbered from 0; `costs` has a row for each, such as its size and latency.

    Candidates that share a bin are alike in every cost. Bins without candidates have no number.
    """
    table: Floats = np.asarray(costs, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise IllegalInput(f"bins need a row of finite costs for each candidate, not an array of shape {table.shape}.")
    if parts < 1:
        raise IllegalInput(f"parts is {parts}; an axis has at least one.")
    if not len(table):
        return np.zeros(0, dtype=np.intp)
    low, extent = table.min(axis=0), np.ptp(table, axis=0)
    shares = np.divide(table - low, extent, out=np.zeros_like(table), where=extent > 0)
    cells = np.minimum((shares * parts).astype(np.intp), parts - 1)  # the largest belongs to the last part
    numbers: Indices = np.unique(np.ravel_multi_index(tuple(cells.T), (parts,) * cells.shape[1]), return_inverse=True)[
        1
    ]
    return numbers


def survivors(losses: ArrayLike, bin_of: ArrayLike, least: int = LEAST) -> Mask:
    """Return who stays after a round: the better half of those judged in each bin, and all who were not judged (NaN).

    No bin falls below `least` candidates because of a round; one that has no more keeps all. Of equals the first stays.
    """
    values: Floats = np.asarray(losses, dtype=np.float64)
    bin_numbers: Indices = np.asarray(bin_of, dtype=np.intp)
    if values.shape != bin_numbers.shape or values.ndim != 1:
        raise IllegalInput(f"there are losses of shape {values.shape} for bins of shape {bin_numbers.shape}.")
    judged = ~np.isnan(values)
    size, known = np.bincount(bin_numbers), np.bincount(bin_numbers, judged)
    drop = np.minimum(known // 2, np.maximum(size - least, 0)).astype(np.intp)
    order = np.lexsort((values, ~judged, bin_numbers))  # bin by bin, best first, who was not judged last
    first = np.concatenate([[0], np.cumsum(size)])[bin_numbers[order]]
    place = np.arange(len(order)) - first
    stays = np.empty(len(values), dtype=bool)
    stays[order] = (place < known[bin_numbers[order]] - drop[bin_numbers[order]]) | ~judged[order]
    return stays


def rounds(candidates: int, least: int = LEAST) -> int:
    """Count the rounds after which a bin of N candidates, all judged every time, shrinks no more."""
    number = 0
    while candidates > least and candidates > 1:
        candidates -= min(candidates // 2, candidates - least)
        number += 1
    return number
