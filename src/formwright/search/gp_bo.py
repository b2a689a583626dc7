"""Bayesian optimisation with a Gaussian process (Snoek et al., 2012), over points that stand for designs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr

from formwright.core.records import History, Objective, Request, Trial
from formwright.search.candidates import Candidates, near_the_best, unseen
from formwright.search.gaussian_process import GaussianProcess, fit
from formwright.search.listing import Coordinates, Listing, listing
from formwright.search.options import among, at_least, check
from formwright.search.parents import warming_up
from formwright.search.predictors import INITIAL, first_or_random, initial_for, placed, points, ranked
from formwright.search.scores import goals_of
from formwright.search.targets import targets
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
        if warming_up(history, self.initial):
            return
        listed = listing(self.space, self.coordinates)
        trials = placed(history.finished, listed.row)
        candidates = unseen(listed, history, near_the_best(self.space, listed, history, self.objectives, rng))
        if len(trials) < 2 or not len(candidates.points):
            return
        process = fit(_points(listed, trials), targets(trials, self.objectives))
        process = process.believe(_points(listed, placed(history.pending, listed.row)))
        worth, mean = self._worth(process, candidates)
        yield from map(candidates.proposal, ranked(worth, rng, second=mean))

    def _worth(self, process: GaussianProcess, candidates: Candidates) -> tuple[Floats, Floats]:
        mean, deviation = process.predict(candidates.points)
        if self.acquisition == "ucb":
            return mean + BOUND * deviation, mean
        best = process.predict(process.points)[0].max()
        return expected_improvement(mean, deviation, float(best)), mean


def expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Return by how much a normal variable exceeds `best` on average, counting 0 where it does not."""
    standard = (mean - best) / deviation
    density = np.exp(-0.5 * np.square(standard)) / np.sqrt(2.0 * np.pi)
    improvement: Floats = deviation * (standard * ndtr(standard) + density)
    return improvement


def _points(listed: Listing, trials: list[Trial]) -> Floats:
    return points(listed.points_of, [trial.request for trial in trials])
