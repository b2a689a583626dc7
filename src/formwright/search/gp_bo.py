"""Bayesian optimisation with a Gaussian process (Snoek et al., 2012), over points that stand for designs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr

from formwright.core.records import Budget, History, Objective, Request, Trial
from formwright.search.gaussian_process import GaussianProcess, fit
from formwright.search.listing import Coordinates, Listing, listing
from formwright.search.options import at_least, check
from formwright.search.parents import warming_up
from formwright.search.predictors import (
    INITIAL,
    among,
    elite,
    first_legal,
    initial_for,
    mutants,
    new_proposals,
    placed,
    points,
    ranked,
)
from formwright.search.scores import goals_of
from formwright.search.targets import targets
from formwright.search.unseen import Legal, Proposal, anything, random_unseen
from formwright.space import Space

Floats = NDArray[np.float64]
Acquisition = Literal["ei", "ucb"]

BOUND = 2.0  # how many standard deviations the upper confidence bound lies above the mean
PARENTS, MUTANTS = 5, 100  # where a space is too large to list, mutants of the best join the pool


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
        proposal = None
        if not warming_up(history, self.initial):
            proposal = first_legal(self._promising(history, rng), self.legal)
        if proposal is None:
            proposal = random_unseen(self.space, history, rng, self.legal)
        return proposal.request(Budget.full())

    def _promising(self, history: History, rng: Generator) -> Iterator[Proposal]:
        listed = listing(self.space, self.coordinates)
        trials = placed(history.finished, listed.row)
        proposals, places = self._candidates(listed, history, trials, rng)
        if len(trials) < 2 or not proposals:
            return
        process = fit(_points(listed, trials), targets(trials, self.objectives))
        process = process.believe(_points(listed, placed(history.pending, listed.row)))
        worth, mean = self._worth(process, places)
        yield from (proposals[index] for index in ranked(worth, rng, second=mean))

    def _candidates(
        self, listed: Listing, history: History, trials: list[Trial], rng: Generator
    ) -> tuple[list[Proposal], Floats]:
        seen = history.digests
        rows = [row for digest, row in listed.row.items() if digest not in seen]
        proposals = [Proposal(listed.designs[row], listed.cards[row]) for row in rows]
        if listed.whole:
            return proposals, listed.points[rows]
        parents = elite(trials, self.objectives, PARENTS)
        near = new_proposals(self.space, mutants(self.space, parents, MUTANTS, rng), history)
        near = [proposal for proposal in near if proposal.card.digest not in listed.row]
        return proposals + near, np.concatenate([listed.points[rows], points(listed.points_of, near)])

    def _worth(self, process: GaussianProcess, places: Floats) -> tuple[Floats, Floats]:
        mean, deviation = process.predict(places)
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
