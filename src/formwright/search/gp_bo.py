"""Bayesian optimisation with a Gaussian process (Snoek et al., 2012), over points that stand for designs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.records import History, Objective, Request
from formwright.search.candidates import Candidates
from formwright.search.expected import expected_improvement
from formwright.search.gaussian_process import GaussianProcess, fit
from formwright.search.listing import Coordinates
from formwright.search.options import among, at_least, check
from formwright.search.predictors import INITIAL, first_or_random, initial_for, ranked
from formwright.search.scores import goals_of
from formwright.search.survey import Survey
from formwright.search.unseen import Legal, Proposal, anything
from formwright.space import Space

Floats = NDArray[np.float64]
Acquisition = Literal["ei", "ucb"]

BOUND = 2.0  # how many standard deviations the upper confidence bound lies above the mean


@dataclass(frozen=True)
class GpBo:
    """Take the design of which a Gaussian process expects most, after `initial` random ones.

    Every listed design is looked at: what counts is the expected improvement upon the best mean so far (`ei`), or the
    mean and two standard deviations (`ucb`). Pending trials are believed to score what the process expects of them.
    """

    space: Space
    objectives: tuple[Objective, ...]
    legal: Legal = anything
    coordinates: Coordinates = "transformer2vec"
    acquisition: Acquisition = "ei"
    initial: int = INITIAL

    def __post_init__(self) -> None:
        goals_of(self.objectives)
        check(
            among("coordinates", self.coordinates, get_args(Coordinates))
            + among("acquisition", self.acquisition, get_args(Acquisition))
            + at_least(2, initial=self.initial)
        )

    @staticmethod
    def for_budget(trials: int | None, steps: int | None) -> dict[str, int]:
        """Return fewer random designs for a small budget."""
        return {"initial": initial_for(trials)}

    def ask(self, history: History, rng: Generator) -> Request:
        """Return the unseen legal design that promises most."""
        return first_or_random(self._promising(history, rng), self.space, history, rng, self.legal)

    def _promising(self, history: History, rng: Generator) -> Iterator[Proposal]:
        seen = self._survey.look(history, rng)
        if seen is None:
            return
        process = fit(seen.points, seen.scores).believe(seen.pending)
        worth, mean = self._worth(process, seen.candidates)
        yield from map(seen.candidates.proposal, ranked(worth, rng, second=mean))

    @cached_property
    def _survey(self) -> Survey:
        return Survey(self.space, self.objectives, self.legal, self.coordinates, self.initial)

    def _worth(self, process: GaussianProcess, candidates: Candidates) -> tuple[Floats, Floats]:
        mean, deviation = process.predict(candidates.points)
        if self.acquisition == "ucb":
            return mean + BOUND * deviation, mean
        best = process.predict(process.points)[0].max()
        return expected_improvement(mean, deviation, float(best)), mean
