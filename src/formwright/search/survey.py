"""What a model of scores is fitted to, and where it is asked: the trials so far and the designs yet to be tried."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.records import History, Objective, Trial
from formwright.search.candidates import Candidates, Rows, legal_rows, near_the_best, unseen
from formwright.search.listing import Listing, listing
from formwright.search.parents import warming_up
from formwright.search.predictors import placed, points
from formwright.search.targets import targets
from formwright.search.unseen import Legal
from formwright.space import Space

Floats = NDArray[np.float64]

FEWEST = 2  # finished trials to learn from


@dataclass(frozen=True, eq=False)
class Seen:
    """Hold the points of finished trials with their standardised scores, those of pending ones, and the candidates."""

    points: Floats
    scores: Floats
    pending: Floats
    candidates: Candidates


@dataclass(frozen=True)
class Survey:
    """Look at a space through points of its designs, as a searcher does that models scores after `initial` trials."""

    space: Space
    objectives: tuple[Objective, ...]
    legal: Legal
    coordinates: str
    initial: int

    def look(self, history: History, rng: Generator) -> Seen | None:
        """Return what a history has shown and left to try; None where there is too little to learn from, or nothing.

        Candidates are all legal listed designs, and mutants of the best ones where a space is too large to list.
        """
        if warming_up(history, self.initial):
            return None
        listed = self._listed
        trials = placed(history.finished, listed.row)
        near = near_the_best(self.space, listed, history, self.objectives, rng)
        candidates = unseen(listed, history, self._rows, near)
        if len(trials) < FEWEST or not len(candidates.points):
            return None
        pending = self._points(placed(history.pending, listed.row))
        return Seen(self._points(trials), targets(trials, self.objectives), pending, candidates)

    def _points(self, trials: list[Trial]) -> Floats:
        asked: list[Any] = [trial.request for trial in trials]
        return points(self._listed.points_of, asked)

    @cached_property
    def _listed(self) -> Listing:
        return listing(self.space, self.coordinates)

    @cached_property
    def _rows(self) -> Rows:
        return legal_rows(self._listed, self.legal)
