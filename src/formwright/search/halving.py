"""Asynchronous successive halving (Li et al., 2020): many short evaluations, longer ones for the best of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from numpy.random import Generator

from formwright.core.records import Budget, History, Objective, Request, Trial
from formwright.search.fronts import best_first
from formwright.search.options import at_least, check
from formwright.search.rungs import rungs_of
from formwright.search.scores import goals_of, score
from formwright.search.unseen import Legal, anything, random_unseen
from formwright.space import Space

_BELOW = 27  # how much shorter than a full evaluation the first one is: three times a third


@dataclass(frozen=True)
class Halving:
    """Evaluate random designs for `min_steps`, and the best 1 in `eta` of each rung for `eta` times as long.

    A promotion waits for nobody: it is due as soon as a trial is among the best of those finished on its rung. With
    several goals the best are the best fronts, the least crowded first. The last rung is `max_steps` long.
    """

    space: Space
    objectives: tuple[Objective, ...]
    legal: Legal = anything
    min_steps: int = 10
    max_steps: int = 270
    eta: int = 3

    def __post_init__(self) -> None:
        goals_of(self.objectives)
        check(at_least(2, eta=self.eta) + at_least(1, min_steps=self.min_steps, max_steps=self.max_steps))
        check(at_least(self.min_steps, max_steps=self.max_steps))

    @staticmethod
    def for_budget(trials: int | None, steps: int | None) -> dict[str, int]:
        """Return a first rung three halvings below the steps of a full evaluation."""
        # rounded up: otherwise there were a further rung that is nearly as long as the last
        return {} if steps is None else {"min_steps": math.ceil(steps / _BELOW), "max_steps": steps}

    @property
    def rungs(self) -> tuple[int, ...]:
        """List the steps of each rung, shortest first."""
        return rungs_of(self.min_steps, self.max_steps, self.eta)

    def ask(self, history: History, rng: Generator) -> Request:
        """Return the promotion that is due on the highest rung, or else a new design on the lowest."""
        rungs = self.rungs
        for lower, upper in reversed(list(pairwise(rungs))):
            for trial in self._due(history, lower, upper):
                return Request(trial.request.card, Budget(upper), trial.number, trial.request.design)
        return random_unseen(self.space, history, rng, self.legal).request(Budget(rungs[0]))

    def _due(self, history: History, lower: int, upper: int) -> Iterator[Trial]:
        finished = [trial for trial in history.finished if trial.request.budget.steps == lower]
        best = best_first(score(finished, self.objectives), len(finished) // self.eta)
        # whatever became of a promotion, it is not made again
        promoted = {trial.request.card.digest for trial in history.trials if trial.request.budget.steps == upper}
        return (finished[index] for index in best if finished[index].request.card.digest not in promoted)
