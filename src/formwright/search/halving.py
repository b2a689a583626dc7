"""Asynchronous successive halving (Li et al., 2020): many short evaluations, longer ones for the best of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from numpy.random import Generator

from formwright.core.errors import IllegalInput
from formwright.core.options import option
from formwright.core.records import Budget, History, Request, Trial
from formwright.search.proposals import random_unseen
from formwright.search.scores import best_first, score
from formwright.search.searchers import CheckedSearcher


def rungs_of(min_steps: int, max_steps: int, eta: int) -> tuple[int, ...]:
    """List the steps of each rung, shortest first: each `eta` times the one before, the last one `max_steps`."""
    steps = [min_steps]
    while steps[-1] * eta < max_steps:
        steps.append(steps[-1] * eta)
    return (*steps, max_steps) if steps[-1] < max_steps else tuple(steps)


def check_rungs(min_steps: int, max_steps: int) -> None:
    """Refuse a last rung that is shorter than the first."""
    if max_steps < min_steps:
        raise IllegalInput(f"max_steps is {max_steps}; it must be at least {min_steps}, which is min_steps")


_BELOW = 27  # the first rung is 3**3 times shorter than a full evaluation


@dataclass(frozen=True)
class Halving(CheckedSearcher):
    """Evaluate random designs for `min_steps`, and the best 1 in `eta` of each rung for `eta` times as long.

    Promotions are asynchronous: one is due as soon as a trial is among the best of those finished on its rung. With
    several goals the best are the best fronts, the least crowded first. The last rung is `max_steps` long.
    """

    min_steps: int = option(10, "training steps of the first rung", least=1)
    max_steps: int = option(270, "training steps of the last rung", least=1)
    eta: int = option(3, "one in `eta` is promoted, and trained `eta` times as long", least=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rungs(self.min_steps, self.max_steps)

    @staticmethod
    def for_budget(trials: int | None, steps: int | None) -> dict[str, int]:
        """Return a first rung three halvings below the steps of a full evaluation."""
        # rounded up: otherwise there would be an extra rung nearly as long as the last
        return {} if steps is None else {"min_steps": math.ceil(steps / _BELOW), "max_steps": steps}

    @property
    def rungs(self) -> tuple[int, ...]:
        return rungs_of(self.min_steps, self.max_steps, self.eta)

    def ask(self, history: History, rng: Generator) -> Request:
        rungs = self.rungs
        for lower, upper in reversed(list(pairwise(rungs))):
            for trial in self._due(history, lower, upper):
                return Request(trial.request.card, Budget(upper), trial.number, trial.request.design)
        return random_unseen(self.space, history, rng, self.legal).request(Budget(rungs[0]))

    def _due(self, history: History, lower: int, upper: int) -> Iterator[Trial]:
        finished = [trial for trial in history.finished if trial.request.budget.steps == lower]
        best = best_first(score(finished, self.objectives), len(finished) // self.eta)
        # a promotion is made once, even if it failed
        promoted = {trial.request.card.digest for trial in history.trials if trial.request.budget.steps == upper}
        return (finished[index] for index in best if finished[index].request.card.digest not in promoted)
