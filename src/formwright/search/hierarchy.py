"""Coarse to fine: a few designs of a large space first, then finer ones around the best (FlexiBERT, appendix B.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, islice
from typing import Any

from numpy.random import Generator

from formwright.core.protocols import Searcher
from formwright.core.records import History, Objective, Request, Trial
from formwright.search.errors import NoLegalDesign, SpaceExhausted
from formwright.search.levels import Level, converged, faults_of, usual_levels
from formwright.search.listing import listing
from formwright.search.make import make_searcher, trains_in_slices
from formwright.search.neighbours import neighbours
from formwright.search.options import at_least, check, not_negative
from formwright.search.predictors import elite, initial_for
from formwright.search.scores import goals_of
from formwright.search.unseen import Legal, anything
from formwright.space import Space, narrowed

OWN_NAME = "coarse-to-fine"
PLANNED = 100  # trials, where nobody says how many there will be


@dataclass(frozen=True)
class CoarseToFine:
    """Search a coarse space, then finer ones around the best designs, each with the same `searcher` and its `options`.

    Each of the `levels` says how many neighbouring members of a list are equal, by the list's name: `{"layers": 2}`.
    Without any, the lists in the space's own tree are freed from the outer to the inner, pairs of equal members first.
    From the second level on, a choice may take what it holds, at the same depth, in one of the `parents` best designs
    so far or in one of the `neighbours` designs within the limits nearest to each of these.

    A level ends when as many of the `planned` trials were asked for as its share and those of the levels before it add
    up to (`shares`, by default equal ones: three levels end after one third and two thirds of the trials, and the last
    one never), when no design is left or, with a `patience`, when so many finished trials did not better any goal by
    more than `tolerance`; the paper's criterion is five trials and 1e-4. The searcher sees the trials of all levels.
    """

    space: Space
    objectives: tuple[Objective, ...]
    legal: Legal = anything
    levels: Sequence[Level] | None = None
    searcher: str = "boshnas"
    options: Mapping[str, Any] = field(default_factory=dict)
    planned: int = PLANNED
    shares: Sequence[float] | None = None
    patience: int | None = None
    tolerance: float = 1e-4
    parents: int = 5
    neighbours: int = 1

    def __post_init__(self) -> None:
        goals_of(self.objectives)
        given = {} if self.patience is None else {"patience": self.patience}
        check(
            at_least(1, planned=self.planned, parents=self.parents, **given)
            + at_least(0, neighbours=self.neighbours)
            + not_negative(tolerance=self.tolerance)
            + faults_of(self._levels, self.shares, self.options, self.space)
            + _faults_of_searcher(self.searcher)
        )
        self._searcher(0, self._narrowed(0, []))  # so that what is wrong with its options is told now

    @staticmethod
    def for_budget(trials: int | None, steps: int | None) -> dict[str, int]:
        """Return the planned trials, of which each level has a share."""
        return {} if trials is None else {"planned": trials}

    def ask(self, history: History, rng: Generator) -> Request:
        """Return what the searcher proposes at the present level, or at the next one where no design is left."""
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
        # what the best designs are made of is used up
        return self._searcher(len(self._levels), self.space).ask(history, rng)

    def level_of(self, history: History) -> int:
        """Tell which level the next trial belongs to by the trials so far, counted from 0."""
        return len(self._ends(history))

    def _ends(self, history: History) -> list[int]:
        """Give, for each level that is over, how many trials there were at its end."""
        ends: list[int] = []
        for planned in self._planned:
            start = ends[-1] if ends else 0
            early = self._converged(history.trials[start:planned], 0 if ends else self._initial)
            if early is None and len(history.trials) < planned:
                break
            ends.append(planned if early is None else start + early)
        return ends

    @property
    def _initial(self) -> int:
        """Return how many random designs the first level begins with, which say nothing of convergence."""
        given = self.options.get("initial")
        return initial_for(self.planned) if given is None else int(given)

    def _converged(self, trials: Sequence[Trial], warmup: int) -> int | None:
        if self.patience is None:
            return None
        return converged(trials, self.objectives, self.patience, self.tolerance, warmup)

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
        # of one beyond the limits, the next level would hold choices that nobody may take
        legal = (neighbour.row for neighbour in found if self.legal(listed.cards[neighbour.row]))
        return [listed.designs[row] for row in islice(legal, self.neighbours)]

    def _narrowed(self, level: int, designs: Sequence[Any]) -> Space:
        return narrowed(self.space, f"{self.space.name}, level {level + 1}", self._levels[level], designs)

    def _searcher(self, level: int, space: Space) -> Searcher:
        """Make the searcher of a level; the last one made for it is kept, because it may have learnt its space."""
        known, searcher = self._made.get(level, (None, None))
        if searcher is None or known != space:
            planned = {"trials": self.planned}
            searcher = make_searcher(self.searcher, space, self.objectives, self.legal, **planned, **self.options)
            self._made[level] = (space, searcher)
        return searcher

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


def _faults_of_searcher(name: object) -> list[str]:
    """List what is wrong with the searcher of each level; a name that nobody knows raises `UnknownName`."""
    if not isinstance(name, str):
        return [f"searcher is {name!r}; it must be the name of the one that searches each level."]
    if name == OWN_NAME:
        return [f"searcher is {OWN_NAME!r} itself; it must be the one that searches each level."]
    if trains_in_slices(name):  # it would count every slice as a trial of the level, and not know the study's steps
        return [f"searcher is {name!r}, which trains a design bit by bit; that of a level trains each design once."]
    return []


def _is_used_up(space: Space, history: History) -> bool:
    """Tell, where that is quickly known, that every design of a space was asked for."""
    if space.where or space.count() > len(history.trials):
        return False
    seen = history.digests
    return all(space.card(design).digest in seen for design in space.enumerate())
