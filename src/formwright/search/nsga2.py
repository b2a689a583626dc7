"""NSGA-II (Deb et al., 2002): tournaments by front and crowding, crossover and mutation."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.random import Generator

from formwright.core.protocols import Design
from formwright.core.records import Budget, History, Objective, Request, Trial
from formwright.search.fronts import best_first
from formwright.search.options import at_least, check, share
from formwright.search.parents import breeding, warming_up
from formwright.search.scores import goals_of, score
from formwright.search.unseen import Legal, anything, first_unseen, random_unseen
from formwright.space import Space


@dataclass(frozen=True)
class Nsga2:
    """Cross and mutate winners of binary tournaments among the `population` best trials so far.

    The population is rebuilt from the history at each proposal, so that a child may be a parent as soon as it is
    evaluated, whichever worker did that; generations would make workers wait for one another.
    """

    space: Space
    objectives: tuple[Objective, ...]
    legal: Legal = anything
    population: int = 40
    crossover: float = 0.9

    def __post_init__(self) -> None:
        goals_of(self.objectives)
        check(at_least(2, population=self.population) + share(crossover=self.crossover))

    @staticmethod
    def for_budget(trials: int | None, steps: int | None) -> dict[str, int]:
        """Return a population that leaves nine tenths of a small budget to evolution."""
        return {"population": 40 if trials is None else min(40, max(4, trials // 10))}

    def ask(self, history: History, rng: Generator) -> Request:
        """Return a child of two winners."""
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


def _winner(best: list[Trial], rng: Generator) -> Trial:
    # the population stands in order, front by front, the least crowded first
    return best[int(rng.integers(len(best), size=2).min())]
