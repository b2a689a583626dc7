"""Evolution: regularised (Real et al., 2019) for one or more goals, NSGA-II (Deb et al., 2002), and LINAS.

LINAS evolves a front on cheap predictions, and only designs predicted to extend it are evaluated (survey, X-C).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.options import option
from formwright.core.protocols import Design
from formwright.core.records import Budget, History, Request, Trial
from formwright.search.candidates import PredictorSearch, mutants, new_proposals
from formwright.search.proposals import Proposal, breeding, first_unseen, random_unseen, warming_up, youngest
from formwright.search.scores import Scores, best_first, hypervolume, longest, score
from formwright.search.searchers import CheckedSearcher


@dataclass(frozen=True)
class RegularizedEvolution(CheckedSearcher):
    """Mutate the best of `tournament` designs drawn from the `population` most recently finished ones.

    The first `population` designs are random. With several goals the best is the least crowded one of the best front.
    """

    population: int = option(50, "designs in the population", least=1)
    tournament: int = option(10, "members that are drawn for a tournament", least=1)

    @staticmethod
    def for_budget(trials: int | None, steps: int | None) -> dict[str, int]:
        """Return a population that leaves three quarters of a small budget to evolution."""
        population = 50 if trials is None else min(50, max(4, trials // 4))
        return {"population": population, "tournament": max(2, population // 5)}

    def ask(self, history: History, rng: Generator) -> Request:
        alive = youngest(history, self.population)
        if not alive or warming_up(history, self.population):
            return random_unseen(self.space, history, rng, self.legal).request(Budget.full())
        parent = self._winner(alive, rng)
        mutant = partial(self.space.mutate, parent.request.design, rng)
        return first_unseen(self.space, history, rng, mutant, self.legal).request(Budget.full(), parent.number)

    def _winner(self, alive: tuple[Trial, ...], rng: Generator) -> Trial:
        # drawn with replacement, as in the paper
        drawn: list[int] = sorted(set(rng.integers(len(alive), size=self.tournament).tolist()))
        entrants = [alive[index] for index in drawn]
        return entrants[best_first(score(entrants, self.objectives), most=1)[0]]


@dataclass(frozen=True)
class Nsga2(CheckedSearcher):
    """Cross and mutate winners of binary tournaments among the `population` best trials so far.

    The population is rebuilt from the history at each proposal, so that a child can become a parent as soon as it is
    evaluated by any worker; generations would make workers wait.
    """

    population: int = option(40, "designs in the population", least=2)
    crossover: float = option(0.9, "probability of crossing two parents over", least=0, most=1)

    @staticmethod
    def for_budget(trials: int | None, steps: int | None) -> dict[str, int]:
        """Return a population that leaves nine tenths of a small budget to evolution."""
        return {"population": 40 if trials is None else min(40, max(4, trials // 10))}

    def ask(self, history: History, rng: Generator) -> Request:
        parents = breeding(history)
        if not parents or warming_up(history, self.population):
            return random_unseen(self.space, history, rng, self.legal).request(Budget.full())
        best = [parents[index] for index in best_first(score(parents, self.objectives), self.population)]
        first, second = (_winner(best, rng) for _ in range(2))
        child = first_unseen(self.space, history, rng, lambda: self._child(first, second, rng), self.legal)
        return child.request(Budget.full(), first.number)

    def _child(self, first: Trial, second: Trial, rng: Generator) -> Design:
        child = first.request.design
        if rng.random() < self.crossover:
            child = self.space.crossover(child, second.request.design, rng)
        return self.space.mutate(child, rng)


def _winner(best: Sequence[Any], rng: Generator) -> Any:
    # the population is sorted, best first: the smaller of two indices wins its tournament
    return best[int(rng.integers(len(best), size=2).min())]


Floats = NDArray[np.float64]
FEWEST = 3  # finished trials to learn from
BEYOND = 0.1  # distance of the reference point beyond the worst of a front, as a share of the front's extent


@dataclass(frozen=True)
class Linas(PredictorSearch):
    """Propose the design whose predicted goals add most to the hypervolume of the current front.

    After `initial` random designs every goal is predicted from the design's choices by ridge regression; NSGA-II's
    selection and moves evolve a `population` for some `generations` on the predictions alone, which costs no
    evaluation. With probability `explore` a random design is taken.
    """

    population: int = option(40, "designs that evolve on predictions", least=2)
    generations: int = option(12, "generations on predictions for each proposal", least=1)
    explore: float = option(0.1, "probability of a random design", least=0, most=1)

    def _promising(self, history: History, rng: Generator) -> Iterator[Proposal]:
        trials = [trial for trial in longest(history.finished) if trial.request.design is not None]
        if warming_up(history, self.initial) or len(trials) < FEWEST or rng.random() < self.explore:
            return
        scores = score(trials, self.objectives)
        model = fit(self._points([trial.request.design for trial in trials]), scores.values)
        candidates = new_proposals(self.space, self._evolved(trials, scores, model, rng), history)
        if candidates:
            gains = _gains(scores, model(self._points([one.design for one in candidates])))
            yield from (candidates[index] for index in np.argsort(-gains, kind="stable"))

    def _evolved(self, trials: Sequence[Trial], scores: Scores, model: Ridge, rng: Generator) -> list[Design]:
        """Evolve designs on predictions, from the best that were evaluated and as many random ones."""
        best = [trials[index].request.design for index in best_first(scores, self.population // 2)]
        designs = best + [self.space.sample(rng) for _ in range(self.population - len(best))]
        for _ in range(self.generations):
            pool = designs + [self._child(designs, rng) for _ in range(self.population)]
            values = model(self._points(pool))
            order = best_first(Scores(values, np.zeros(len(pool))), self.population)
            designs = [pool[index] for index in order]
        return designs

    def _child(self, designs: Sequence[Design], rng: Generator) -> Design:
        first, second = (_winner(designs, rng) for _ in range(2))
        child = self.space.crossover(first, second, rng)
        return next(mutants(self.space, [child], 1, rng), child)

    def _points(self, designs: Sequence[Design]) -> Floats:
        return np.stack([self.space.encode(design) for design in designs])


def _gains(scores: Scores, predicted: Floats) -> Floats:
    """Return the gain in hypervolume of each predicted row over the legal observations, with goals scaled."""
    known = scores.values[scores.violations == 0.0] if (scores.violations == 0.0).any() else scores.values
    low, extent = known.min(axis=0), np.maximum(np.ptp(known, axis=0), 1e-12)
    observed, rows = (known - low) / extent, (predicted - low) / extent
    directions = ["min"] * known.shape[1]
    reference = np.full(known.shape[1], 1 + BEYOND)
    before = hypervolume(observed, reference, directions)  # type: ignore[arg-type]
    added = [hypervolume(np.vstack((observed, row)), reference, directions) - before for row in rows]  # type: ignore[arg-type]
    gains: Floats = np.array(added) - 1e-9 * rows.sum(axis=1)  # what adds nothing is ordered by how near it comes
    return gains


PENALTIES = tuple(10.0**power for power in range(-3, 4))


@dataclass(frozen=True, eq=False)
class Ridge:
    """A linear map from points to several values at once."""

    centre: Floats
    mean: Floats
    weights: Floats  # (dimensions, values)

    def __call__(self, points: Floats) -> Floats:
        predicted: Floats = (points - self.centre) @ self.weights + self.mean
        return predicted


def fit(points: Floats, values: Floats) -> Ridge:
    """Fit (points, dimensions) to (points, values), each value with the penalty of the smallest leave-one-out error."""
    centre, mean = points.mean(axis=0), values.mean(axis=0)
    left, singular, right = np.linalg.svd(points - centre, full_matrices=False)
    inside = left.T @ (values - mean)
    columns = [_weights(left, singular, inside[:, n], values[:, n] - mean[n]) for n in range(values.shape[1])]
    return Ridge(centre, mean, right.T @ np.column_stack(columns))


def _weights(left: Floats, singular: Floats, inside: Floats, wanted: Floats) -> Floats:
    """Return the weights, in singular directions, of the penalty with the smallest error on left-out points."""
    best, found = np.inf, np.zeros_like(inside)
    for penalty in PENALTIES:
        shrunk = singular**2 / (singular**2 + penalty)
        # the error at a point that was left out follows from the fit to all of them; the mean takes its share too
        leverage = (left**2) @ shrunk + 1 / len(wanted)
        errors = (wanted - left @ (shrunk * inside)) / np.maximum(1 - leverage, 1e-9)
        if (error := float((errors**2).sum())) < best:
            best, found = error, inside * singular / (singular**2 + penalty)
    return found
