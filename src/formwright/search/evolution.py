"""Regularised evolution (Real et al., 2019): tournaments among the youngest, who die of age and not of failure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from numpy.random import Generator

from formwright.core.records import Budget, History, Objective, Request, Trial
from formwright.search.fronts import best_first
from formwright.search.options import at_least, check
from formwright.search.parents import warming_up, youngest
from formwright.search.scores import goals_of, score
from formwright.search.unseen import Legal, anything, first_unseen, random_unseen
from formwright.space import Space


@dataclass(frozen=True)
class RegularizedEvolution:
    """Mutate the best of `tournament` designs drawn from the `population` youngest finished ones.

    The first `population` designs are random. With several goals the best is the least crowded one of the best front.
    """

    space: Space
    objectives: tuple[Objective, ...]
    legal: Legal = anything
    population: int = 50
    tournament: int = 10

    def __post_init__(self) -> None:
        goals_of(self.objectives)
        check(at_least(1, population=self.population, tournament=self.tournament))

    @staticmethod
    def for_budget(trials: int | None, steps: int | None) -> dict[str, int]:
        """Return a population that leaves three quarters of a small budget to evolution."""
        population = 50 if trials is None else min(50, max(4, trials // 4))
        return {"population": population, "tournament": max(2, population // 5)}

    def ask(self, history: History, rng: Generator) -> Request:
        """Return a mutant of a tournament's winner."""
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
