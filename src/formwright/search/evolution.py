"""Evolution: regularised (Real et al., 2019) for one or more goals, and NSGA-II (Deb et al., 2002)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from numpy.random import Generator

from formwright.core.options import option
from formwright.core.protocols import Design
from formwright.core.records import Budget, History, Request, Trial
from formwright.search.proposals import breeding, first_unseen, random_unseen, warming_up, youngest
from formwright.search.scores import best_first, score
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
        first, second = (tournament_winner(best, rng) for _ in range(2))
        child = first_unseen(self.space, history, rng, lambda: self._child(first, second, rng), self.legal)
        return child.request(Budget.full(), first.number)

    def _child(self, first: Trial, second: Trial, rng: Generator) -> Design:
        child = first.request.design
        if rng.random() < self.crossover:
            child = self.space.crossover(child, second.request.design, rng)
        return self.space.mutate(child, rng)


def tournament_winner(best: Sequence[Any], rng: Generator) -> Any:
    """Return the winner of a binary tournament."""
    # the population is sorted, best first: the smaller of two indices wins its tournament
    return best[int(rng.integers(len(best), size=2).min())]
