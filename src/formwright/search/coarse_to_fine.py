"""Coarse to fine: search a coarse version of a space, then finer ones around the best (FlexiBERT, appendix B.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice
from typing import Any

import numpy as np
from numpy.random import Generator

from formwright.core.errors import Fault, IllegalDesign, nearest
from formwright.core.options import option
from formwright.core.protocols import Searcher
from formwright.core.records import History, Objective, Request, Trial
from formwright.search.candidates import elite, initial_for
from formwright.search.listing import listing, neighbours
from formwright.search.proposals import NoLegalDesign, SpaceExhausted
from formwright.search.scores import goals_of, score
from formwright.search.searchers import CheckedSearcher, SearcherPart, part_of, searcher
from formwright.space import Space, lists_of, narrowed

Level = Mapping[str, int]


def usual_levels(space: Space) -> tuple[Level, ...]:
    """List levels that free the lists of a space from the outer to the inner; the last one frees all.

    In the first, members of outer lists are equal in pairs; members of a list inside another are all equal until the
    outer one has been free for a level.
    """
    lists = list(lists_of(space.root))
    deepest = max((found.inside for found in lists), default=-1)
    levels: list[Level] = []
    for freed in range(deepest + 2):
        tied = {found.name: found.most for found in lists if found.inside >= max(freed, 1) and found.most > 1}
        pairs = {found.name: 2 for found in lists if found.inside == freed == 0 and found.most > 1}
        if not levels or levels[-1] != pairs | tied:
            levels.append(pairs | tied)
    return tuple(levels) if levels else ({},)


def level_faults(levels: Sequence[Level], shares: Sequence[float] | None, space: Space) -> Iterator[Fault]:
    """List what is wrong with the levels of a space or their shares of the trials.

    Unknown names of all levels are listed, so that no study fails at its last level after hours.
    """
    if not levels or any(tied < 1 for level in levels for tied in level.values()):
        yield Fault("levels", f"is {levels!r}; it must be a list of numbers from 1 on, such as [{{'layers': 2}}, {{}}]")
    if shares is not None and (len(shares) != len(levels) or not all(0 < share < np.inf for share in shares)):
        yield Fault("shares", f"is {shares!r}; it must be a list of {len(levels)} numbers above 0, one for each level")
    known = sorted(found.name for found in lists_of(space.root))
    for name in dict.fromkeys(name for level in levels for name in level if name not in known):
        close = nearest(name, known)
        hint = f"nearest: {close[0]!r}" if close else f"there are {', '.join(known) or 'none'}"
        yield Fault("levels", f"no list of space {space.name!r} is called {name!r}; {hint}")


def converged(
    trials: Sequence[Trial], objectives: Sequence[Objective], patience: int, tolerance: float, warmup: int = 0
) -> int | None:
    """Return after how many trials the last `patience` finished ones improved no goal by more than `tolerance`.

    The first `warmup` trials that did not fail are not counted, and neither are pending and failed ones; a trial that
    violates a limit never improves. None means that this has not happened.
    """
    best, stale, alive = np.full(len(goals_of(objectives)), np.inf), 0, 0
    for number, trial in enumerate(trials):
        alive += trial.state != "failed"  # a searcher replaces failed random designs by further ones
        if trial.state != "finished":
            continue
        found = score([trial], objectives)
        values = found.values[0] if not found.violations[0] else np.full_like(best, np.inf)
        better = bool((values < best - tolerance).any())
        best = np.minimum(best, values)
        stale = 0 if better or alive <= warmup else stale + 1
        if stale >= patience:
            return number + 1
    return None


PLANNED = 100  # trials, where nobody says how many there will be


@dataclass(frozen=True)
class CoarseToFine(CheckedSearcher):
    """Search a coarse space, then finer ones around the best designs, each with the same `searcher`.

    Each of the `levels` says how many neighbouring members of a list are equal, by the list's name: `{"layers": 2}`.
    Without any, the lists in the space's own tree are freed from the outer to the inner, pairs of equal members first.
    From the second level on, a choice may take what it holds, at the same depth, in one of the `parents` best designs
    so far or in one of the `neighbours` designs within the limits nearest to each of these.

    A level ends when as many of the `planned` trials were proposed as its share and those of the levels before it add
    up to (`shares`, by default equal ones: three levels end after one third and two thirds of the trials, and the last
    one never), when no design is left or, with a `patience`, when N finished trials improved no goal by more than
    `tolerance`; the paper's criterion is five trials and 1e-4. The searcher sees the trials for all levels.
    """

    levels: Sequence[Level] | None = option(
        None, "for each level, how many neighbouring members of a list are equal, by the list's name"
    )
    searcher: SearcherPart = option(searcher("boshnas"), "the searcher of every level")
    planned: int = option(PLANNED, "trials that the levels share", least=1)
    shares: Sequence[float] | None = option(None, "share of the trials of each level (default: equal ones)")
    patience: int | None = option(None, "end a level after N trials without an improvement", least=1)
    tolerance: float = option(1e-4, "minimum improvement that resets the patience", least=0, most=1e6)
    parents: int = option(5, "best designs around which a finer level searches", least=1)
    neighbours: int = option(1, "designs near each of these that count too", least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        faults = [*level_faults(self._levels, self.shares, self.space), *self._searcher_faults()]
        if faults:
            raise IllegalDesign(faults, what="options of coarse-to-fine")
        self._searcher(0, self._narrowed(0, []))  # reports faults of its options at construction

    def _searcher_faults(self) -> Iterator[Fault]:
        if isinstance(self.searcher, part_of(CoarseToFine)) or self.searcher.name == "coarse-to-fine":
            yield Fault("searcher", "is coarse-to-fine itself; it must be the one that searches each level")
        elif self.searcher.trains_in_slices:  # each rung would count as a trial of the level
            yield Fault("searcher", f"is {self.searcher.name}, which trains a design in rungs; take one without")

    @staticmethod
    def for_budget(trials: int | None, steps: int | None) -> dict[str, int]:
        return {} if trials is None else {"planned": trials}

    def ask(self, history: History, rng: Generator) -> Request:
        ends = self._ends(history)
        space = self._narrowed(0, [])
        for level in range(len(self._levels)):
            if level:
                end = ends[level - 1] if level <= len(ends) else len(history.trials)
                space = self._finer(level, space, history.trials[:end])
            if level >= len(ends) and not _is_used_up(space, history):
                try:
                    return self._searcher(level, space).ask(history, rng)
                except (SpaceExhausted, NoLegalDesign):
                    continue
        # all combinations of the best designs are used up
        return self._searcher(len(self._levels), self.space).ask(history, rng)

    def _ends(self, history: History) -> list[int]:
        """Return, for each level that is over, how many trials there were at its end."""
        ends: list[int] = []
        for planned in self._planned:
            start = ends[-1] if ends else 0
            early, warmup = None, 0 if ends else self._initial
            if self.patience is not None:
                trials = history.trials[start:planned]
                early = converged(trials, self.objectives, self.patience, self.tolerance, warmup)
            if early is None and len(history.trials) < planned:
                break
            ends.append(planned if early is None else start + early)
        return ends

    @property
    def _initial(self) -> int:
        """Return how many random designs the first level begins with, which say nothing of convergence."""
        given = getattr(self.searcher, "initial", None)
        return initial_for(self.planned) if given is None else int(given)

    def _finer(self, level: int, space: Space, trials: Sequence[Trial]) -> Space:
        """Narrow a level to what the best designs so far, and their neighbours in the level before, are made of."""
        best = elite([trial for trial in trials if trial.state == "finished"], self.objectives, self.parents)
        near = [neighbour for design in best for neighbour in self._near(design, space)]
        return self._narrowed(level, best + near)

    def _near(self, design: Any, space: Space) -> list[Any]:
        if not self.neighbours:
            return []
        listed, card = listing(space), space.card(design)
        found = neighbours(listed, card, listed.points_of([design], [card])[0])
        # illegal neighbours would add choices that are never allowed
        legal = (neighbour.row for neighbour in found if self.legal(listed.cards[neighbour.row]))
        return [listed.designs[row] for row in islice(legal, self.neighbours)]

    def _narrowed(self, level: int, designs: Sequence[Any]) -> Space:
        return narrowed(self.space, f"{self.space.name}, level {level + 1}", self._levels[level], designs)

    def _searcher(self, level: int, space: Space) -> Searcher:
        """Make the searcher of a level; the last one made for it is kept, because it caches its space."""
        known, found = self._made.get(level, (None, None))
        if found is None or known != space:
            found = self.searcher.bind(space, self.objectives, self.legal, self.planned)
            self._made[level] = (space, found)
        return found

    @cached_property
    def _made(self) -> dict[int, tuple[Space, Searcher]]:
        return {}

    @cached_property
    def _planned(self) -> list[int]:
        """List the trials after which each level but the last ends."""
        shares = self.shares or [1.0] * len(self._levels)
        return [round(self.planned * share / sum(shares)) for share in accumulate(shares)][:-1]

    @cached_property
    def _levels(self) -> Sequence[Level]:
        return self.levels if self.levels is not None else usual_levels(self.space)


def _is_used_up(space: Space, history: History) -> bool:
    """Return whether every design of a space was proposed, where that is quick to check."""
    if space.where or space.count() > len(history.trials):
        return False
    seen = history.digests
    return all(space.card(design).digest in seen for design in space.enumerate())
