"""Shared parts of searchers that predict scores: training data, candidates, and their ranking."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.options import option
from formwright.core.records import Budget, History, Objective, Request, Trial
from formwright.search.listing import Coordinates, Listing, Place, listing
from formwright.search.proposals import Legal, Proposal, anything, breeding, random_unseen, warming_up
from formwright.search.scores import best_first, score, targets
from formwright.search.searchers import CheckedSearcher
from formwright.space import Space

Floats = NDArray[np.float64]
INITIAL = 12


def initial_for(trials: int | None) -> int:
    """Return how many random designs to begin with: 12, or a fifth of a small budget."""
    return INITIAL if trials is None else min(INITIAL, max(3, trials // 5))


def placed(trials: Iterable[Trial], listed: Container[str]) -> list[Trial]:
    """Keep the trials that have a point: their design is known, or their card's digest is listed."""
    return [trial for trial in trials if trial.request.design is not None or trial.request.card.digest in listed]


def points(place: Place, asked: Sequence[Request | Proposal]) -> Floats:
    # the cards of a space are Formwright's own
    return place([one.design for one in asked], cast("list[Card]", [one.card for one in asked]))


def elite(trials: Sequence[Trial], objectives: Sequence[Objective], number: int) -> list[Any]:
    """Return the designs of the best trials, the best first; a card given by the user has none."""
    known = [trial for trial in trials if trial.request.design is not None]
    return [known[index].request.design for index in best_first(score(known, objectives), number)]


def mutants(space: Space, parents: Sequence[Any], number: int, rng: Generator) -> Iterator[Any]:
    """Yield up to `number` mutants, of one parent after the other; parents without mutants are skipped."""
    for index in range(number if parents else 0):
        try:
            yield space.mutate(parents[index % len(parents)], rng)
        except IllegalInput:  # a constrained space finds no move from here
            continue


def offspring(
    space: Space, history: History, objectives: Sequence[Objective], parents: int, number: int, rng: Generator
) -> Iterator[Any]:
    return mutants(space, elite(breeding(history), objectives, parents), number, rng)


def new_proposals(space: Space, designs: Iterable[Any], history: History) -> list[Proposal]:
    """Return the designs whose cards have not been proposed, each card once."""
    seen = history.digests
    proposals = (Proposal(design, space.card(design)) for design in designs)
    return list({found.card.digest: found for found in proposals if found.card.digest not in seen}.values())


def ranked(worth: Floats, rng: Generator, second: Floats | None = None) -> list[int]:
    """Return the rows from the largest worth to the smallest; equals by `second`, and then by chance."""
    keys = [rng.random(len(worth)), *([] if second is None else [-second]), -worth]
    order: list[int] = np.lexsort(keys).tolist()
    return order


@dataclass(frozen=True)
class PredictorSearch(CheckedSearcher):
    """Base of searchers that begin with `initial` random designs and then rank candidates by predicted scores."""

    initial: int = option(INITIAL, "random designs before the first prediction", least=2)

    @staticmethod
    def for_budget(trials: int | None, steps: int | None) -> dict[str, int]:
        return {"initial": initial_for(trials)}

    def ask(self, history: History, rng: Generator) -> Request:
        """Ask for the first promising design within the limits, or for a random unseen one where there is none."""
        legal = (one for one in self._promising(history, rng) if self.legal(one.card))
        found = next(legal, None) or random_unseen(self.space, history, rng, self.legal)
        return found.request(Budget.full())

    def _promising(self, history: History, rng: Generator) -> Iterator[Proposal]:
        """Yield proposals, the most promising first; none means a random design."""
        raise TypeError(f"{type(self).__name__} proposes nothing")


Rows = NDArray[np.intp]
PARENTS, MUTANTS = 5, 100  # where a space is too large to list, mutants of the best join the pool


@dataclass(frozen=True, eq=False)
class Candidates:
    """Hold rows of a listing and further proposals, with the points of both in this order."""

    listed: Listing
    rows: Rows
    more: tuple[Proposal, ...]
    points: NDArray[np.floating[Any]]

    def proposal(self, index: int) -> Proposal:
        if index >= len(self.rows):
            return self.more[index - len(self.rows)]
        row = self.rows[index]
        return Proposal(self.listed.designs[row], self.listed.cards[row])


def legal_rows(listed: Listing, legal: Legal) -> Rows:
    """Return the rows of a listing that are within the limits, each card once."""
    rows = listed.row.values()
    return np.array([row for row in rows if legal is anything or legal(listed.cards[row])], dtype=np.intp)


def unseen(listed: Listing, history: History, rows: Rows, more: Sequence[Proposal] = ()) -> Candidates:
    """Return those rows of a listing that have not been proposed, and more designs that are not listed."""
    known = listed.row
    seen = [known[digest] for digest in history.digests if digest in known]
    rows = rows[~np.isin(rows, seen)]
    more = tuple(proposal for proposal in more if proposal.card.digest not in known)
    places = listed.points[rows]
    if more:
        places = np.concatenate([places, points(listed.points_of, more)])
    return Candidates(listed, rows, more, places)


def near_the_best(
    space: Space, listed: Listing, history: History, objectives: Sequence[Objective], rng: Generator
) -> list[Proposal]:
    """Return new mutants of the best designs where a space is too large to list, and none where all are listed."""
    if listed.whole:
        return []
    return new_proposals(space, offspring(space, history, objectives, PARENTS, MUTANTS, rng), history)


FEWEST = 2  # finished trials to learn from


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Hold the points of finished trials with their standardised scores, those of pending ones, and the candidates."""

    points: Floats
    scores: Floats
    pending: Floats
    candidates: Candidates


@dataclass(frozen=True)
class SurrogateSearch(PredictorSearch):
    """Base of searchers that fit a surrogate model to points of designs and propose the design of greatest worth."""

    coordinates: Coordinates = "one-hot"

    def _worth(self, seen: TrainingData, rng: Generator) -> tuple[Floats, Floats]:
        """Return how much each candidate is worth, and its predicted score, by which ties are broken."""
        raise TypeError(f"{type(self).__name__} weighs nothing")

    def _promising(self, history: History, rng: Generator) -> Iterator[Proposal]:
        if (seen := self.look(history, rng)) is not None:
            worth, mean = self._worth(seen, rng)
            yield from map(seen.candidates.proposal, ranked(worth, rng, second=mean))

    def look(self, history: History, rng: Generator) -> TrainingData | None:
        """Return the training data and candidates; None where there are too few trials or no candidates.

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
        return TrainingData(self._points(trials), targets(trials, self.objectives), pending, candidates)

    def _points(self, trials: list[Trial]) -> Floats:
        asked: list[Any] = [trial.request for trial in trials]
        return points(self._listed.points_of, asked)

    @cached_property
    def _listed(self) -> Listing:
        return listing(self.space, self.coordinates)

    @cached_property
    def _rows(self) -> Rows:
        return legal_rows(self._listed, self.legal)


def expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Return the expected value of max(0, x - best) for normal x."""
    standard = (mean - best) / deviation
    density = np.exp(-0.5 * np.square(standard)) / np.sqrt(2.0 * np.pi)
    improvement: Floats = deviation * (standard * ndtr(standard) + density)
    return improvement
