"""Progressive Dynamic Hurdles (So et al., 2019): evolution in which designs earn their training slice by slice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from numpy.random import Generator

from formwright.core.records import Budget, History, Objective, Request, Trial
from formwright.search.lives import Life, Rules, Standing, fitness, lives_of, standing
from formwright.search.options import at_least, check
from formwright.search.rungs import rungs_of
from formwright.search.scores import goals_of, score
from formwright.search.tournaments import draw, winners
from formwright.search.unseen import Legal, anything, first_unseen, random_unseen
from formwright.space import Space

_BELOW = 9  # how much shorter than a full evaluation the first one is: twice a third
_MOST = 100  # the published population


@dataclass(frozen=True)
class Hurdles:
    """Mutate winners of tournaments, and train further whoever is strictly above the mean of the population.

    The first `population` designs are random. Every child is the mutant of the fittest of `tournament` members and
    takes the place of the least fit of as many others; nobody dies of age. All are evaluated for `min_steps` first.
    After each `batch` of designs a hurdle is set: the mean fitness of those members of the population that stand on
    the highest rung so far. Later designs that are strictly above it go on to the next rung, `eta` times as long, up
    to `max_steps`, and from there to the next hurdle. Members are compared by their latest scores, whatever the
    length of their training, as in the authors' experiment.

    With several goals, or where limits are broken, fitness is how many members of the same group are better. Whose
    place a child takes is drawn from a stream of its own, so that population and hurdles follow from the trials alone.
    """

    space: Space
    objectives: tuple[Objective, ...]
    legal: Legal = anything
    population: int = _MOST
    tournament: int = 10
    batch: int = _MOST
    min_steps: int = 10
    max_steps: int = 90
    eta: int = 3

    def __post_init__(self) -> None:
        goals_of(self.objectives)
        check(
            at_least(1, population=self.population, tournament=self.tournament, batch=self.batch)
            + at_least(2, eta=self.eta)
            + at_least(1, min_steps=self.min_steps, max_steps=self.max_steps)
        )
        check(at_least(self.min_steps, max_steps=self.max_steps))

    @staticmethod
    def for_budget(trials: int | None, steps: int | None) -> dict[str, int]:
        """Return three rungs, and batches that leave about half of a small budget to designs that face both hurdles."""
        population = _MOST if trials is None else min(_MOST, max(4, trials // 5))
        sizes = {"population": population, "tournament": min(10, max(2, population // 5)), "batch": population}
        rungs = {} if steps is None else {"min_steps": math.ceil(steps / _BELOW), "max_steps": steps}
        return sizes | rungs

    @property
    def rungs(self) -> tuple[int, ...]:
        """List the steps of each rung, shortest first."""
        return rungs_of(self.min_steps, self.max_steps, self.eta)

    def ask(self, history: History, rng: Generator) -> Request:
        """Return the next slice of training that a design has earned, or else a new design on the lowest rung."""
        rungs = self.rungs
        lives = lives_of(history, rungs)
        now = self._standing(lives)
        if now.due:
            life = lives[now.due[0]]
            assert life.latest is not None, "only a design with a score clears a hurdle"
            request = life.latest.request
            return Request(request.card, Budget(rungs[life.rung + 1]), life.latest.number, request.design)
        if not now.alive or sum(not life.failed for life in lives) < self.population:
            return random_unseen(self.space, history, rng, self.legal).request(Budget(rungs[0]))
        parent = self._parent([lives[index] for index in now.alive], rng)
        mutant = partial(self.space.mutate, parent.request.design, rng)
        return first_unseen(self.space, history, rng, mutant, self.legal).request(Budget(rungs[0]), parent.number)

    def hurdles(self, history: History) -> tuple[float, ...]:
        """List the hurdles that a history has set so far, as fitness: with one goal its value, negative for `min`."""
        return tuple(hurdle.height for hurdle in self._standing(lives_of(history, self.rungs)).hurdles)

    def _standing(self, lives: list[Life]) -> Standing:
        rules = Rules(self.population, self.tournament, self.batch)
        return standing(lives, self.objectives, len(self.rungs) - 1, rules)

    def _parent(self, members: list[Life], rng: Generator) -> Trial:
        trials = [member.latest for member in members if member.latest is not None]
        drawn = draw(rng, 1, len(trials), self.tournament)[0]
        entrants = [trials[int(index)] for index in drawn]
        scores = score(entrants, self.objectives)
        return entrants[int(winners(fitness(scores, scores)))]
