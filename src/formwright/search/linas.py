"""LINAS: evolve a front on cheap predictions, and evaluate only the designs that would push it out (survey, X-C)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.protocols import Design
from formwright.core.records import History, Objective, Request, Trial
from formwright.search.fronts import best_first, hypervolume, longest
from formwright.search.options import at_least, check, share
from formwright.search.parents import warming_up
from formwright.search.predictors import first_or_random, initial_for, mutants, new_proposals
from formwright.search.ridge import Ridge, fit
from formwright.search.scores import Scores, goals_of, score
from formwright.search.unseen import Legal, Proposal, anything
from formwright.space import Space

Floats = NDArray[np.float64]

FEWEST = 3  # finished trials to learn from
BEYOND = 0.1  # how far the reference point lies beyond the worst of a front, as a share of the front's extent


@dataclass(frozen=True)
class Linas:
    """Propose the design whose predicted goals add most to the volume that the front so far dominates.

    After `initial` random designs every goal is predicted from the design's choices by ridge regression; NSGA-II's
    selection and moves evolve a `population` for some `generations` on the predictions alone, which costs no
    evaluation. With probability `explore` a random design is taken.
    """

    space: Space
    objectives: tuple[Objective, ...]
    legal: Legal = anything
    initial: int = 12
    population: int = 40
    generations: int = 12
    explore: float = 0.1

    def __post_init__(self) -> None:
        goals_of(self.objectives)
        check(
            at_least(2, initial=self.initial, population=self.population)
            + at_least(1, generations=self.generations)
            + share(explore=self.explore)
        )

    @staticmethod
    def for_budget(trials: int | None, steps: int | None) -> dict[str, int]:
        """Return fewer random designs for a small budget."""
        return {"initial": initial_for(trials)}

    def ask(self, history: History, rng: Generator) -> Request:
        """Return the most promising design, or a random one."""
        return first_or_random(self._promising(history, rng), self.space, history, rng, self.legal)

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
        # the population stands in order, the best first: the smaller of two draws wins its tournament
        first, second = (designs[int(rng.integers(len(designs), size=2).min())] for _ in range(2))
        child = self.space.crossover(first, second, rng)
        return next(mutants(self.space, [child], 1, rng), child)

    def _points(self, designs: Sequence[Design]) -> Floats:
        return np.stack([self.space.encode(design) for design in designs])


def _gains(scores: Scores, predicted: Floats) -> Floats:
    """Give how much each predicted row adds to the volume of those observed within the limits, with goals scaled."""
    known = scores.values[scores.violations == 0.0] if (scores.violations == 0.0).any() else scores.values
    low, extent = known.min(axis=0), np.maximum(np.ptp(known, axis=0), 1e-12)
    observed, rows = (known - low) / extent, (predicted - low) / extent
    directions = ["min"] * known.shape[1]
    reference = np.full(known.shape[1], 1 + BEYOND)
    before = hypervolume(observed, reference, directions)  # type: ignore[arg-type]
    added = [hypervolume(np.vstack((observed, row)), reference, directions) - before for row in rows]  # type: ignore[arg-type]
    gains: Floats = np.array(added) - 1e-9 * rows.sum(axis=1)  # what adds nothing is ordered by how near it comes
    return gains
