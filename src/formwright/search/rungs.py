"""Searchers that train good designs further: asynchronous successive halving, and Progressive Dynamic Hurdles.

Halving (Li et al., 2020) makes many short evaluations, and longer ones for the best of them. Hurdles (So et al., 2019)
is evolution in which good designs earn more training steps: its tournaments and hurdles work on arrays of fitness, of
which larger is better. Populations are the last axis, so that the same code serves one search or hundreds in parallel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.core.options import option
from formwright.core.records import Budget, History, Objective, Request, Trial
from formwright.core.rng import derive
from formwright.search.proposals import first_unseen, random_unseen
from formwright.search.scores import Scores, best_first, score
from formwright.search.searchers import CheckedSearcher

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


def rungs_of(min_steps: int, max_steps: int, eta: int) -> tuple[int, ...]:
    """List the steps of each rung, shortest first: each `eta` times the one before, the last one `max_steps`."""
    steps = [min_steps]
    while steps[-1] * eta < max_steps:
        steps.append(steps[-1] * eta)
    return (*steps, max_steps) if steps[-1] < max_steps else tuple(steps)


@dataclass(frozen=True)
class RungSearch(CheckedSearcher):
    """Base of searchers that train designs for `min_steps`, and good ones further, rung by rung, to `max_steps`."""

    min_steps: int = option(10, "training steps of the first rung", least=1)
    max_steps: int = option(270, "training steps of the last rung", least=1)
    eta: int = option(3, "how much longer each rung is than the one before", least=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_steps < self.min_steps:
            raise IllegalInput(
                f"max_steps is {self.max_steps}; it must be at least {self.min_steps}, which is min_steps"
            )

    @property
    def rungs(self) -> tuple[int, ...]:
        return rungs_of(self.min_steps, self.max_steps, self.eta)


def _rungs_for(steps: int | None, ratio: int) -> dict[str, int]:
    """Return a first rung that many times shorter than a full evaluation."""
    # rounded up: otherwise there would be an extra rung nearly as long as the last
    return {} if steps is None else {"min_steps": math.ceil(steps / ratio), "max_steps": steps}


@dataclass(frozen=True)
class Halving(RungSearch):
    """Evaluate random designs for `min_steps`, and the best 1 in `eta` of each rung for `eta` times as long.

    Promotions are asynchronous: one is due as soon as a trial is among the best of those finished on its rung. With
    several goals the best are the best fronts, the least crowded first. The last rung is `max_steps` long.
    """

    eta: int = option(3, "one in `eta` is promoted, and trained `eta` times as long", least=2)

    @staticmethod
    def for_budget(trials: int | None, steps: int | None) -> dict[str, int]:
        """Return a first rung three halvings below the steps of a full evaluation."""
        return _rungs_for(steps, ratio=27)

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


def draw(rng: Generator, rows: int, population: int, size: int) -> Indices:
    """Draw `size` different members of each of `rows` populations, in random order, (rows, size).

    Populations that are not larger than that are drawn whole.
    """
    keys = rng.random((rows, population))
    if size < population:
        drawn: Indices = np.argpartition(keys, size - 1, axis=1)[:, :size]
    else:
        drawn = np.broadcast_to(np.arange(population), keys.shape)
    # in the order of their keys: otherwise ties would depend on the position in the population
    return np.take_along_axis(drawn, np.argsort(np.take_along_axis(keys, drawn, axis=1), axis=1), axis=1)


def height(fitness: Floats) -> Floats:
    """Return the hurdle that populations set: their mean fitness."""
    # so that rounding puts no member above the mean of equal ones
    mean: Floats = np.clip(fitness.mean(axis=-1), fitness.min(axis=-1), fitness.max(axis=-1))
    return mean


@dataclass(frozen=True)
class DesignProgress:
    """The trials of one design: the last finished one and its rung, and whether others are pending or failed."""

    latest: Trial | None
    rung: int
    under_way: bool
    failed: bool

    @property
    def fertile(self) -> bool:
        """Return whether the design has a score and never failed, so that it may be a parent."""
        return self.latest is not None and not self.failed


@dataclass(frozen=True, eq=False)
class Hurdle:
    """Hold the mean fitness of some trials, and these trials' scores."""

    members: Scores
    height: float

    @classmethod
    def of(cls, members: Scores) -> Hurdle:
        return cls(members, float(height(fitness(members, members))))

    def cleared_by(self, scores: Scores) -> bool:
        """Return whether the only row of some scores is strictly above the hurdle."""
        return bool(fitness(scores, self.members)[0] > self.height)


@dataclass(frozen=True, eq=False)
class EvolutionState:
    """The population (indices of designs), the hurdles so far, and the designs due for the next rung."""

    alive: tuple[int, ...]
    hurdles: tuple[Hurdle, ...]
    due: tuple[int, ...]


def fitness(scores: Scores, reference: Scores) -> Floats:
    """Return the fitness of each row relative to a reference; larger is better.

    With one goal and no violated limit in the reference this is the score. Otherwise there is no common unit, and it is
    minus the number of better rows in the reference.
    """
    if scores.values.shape[1] == 1 and not reference.violations.any():
        return np.where(scores.violations > 0, -np.inf, -scores.values[:, 0])
    values, others = scores.values[:, np.newaxis], reference.values[np.newaxis]  # (rows, reference, goals)
    beaten = (others <= values).all(axis=2) & (others < values).any(axis=2)
    broken, others_broken = scores.violations[:, np.newaxis], reference.violations[np.newaxis]
    worse = (others_broken < broken) | ((others_broken == broken) & beaten)
    number: Floats = worse.sum(axis=1).astype(np.float64)
    return -number


def progress_of(history: History, rungs: Sequence[int]) -> list[DesignProgress]:
    """List the designs of a history in the order in which they were first asked for.

    A trial without a budget is on the last rung; one whose budget is no rung, or whose design is not known, is left
    out.
    """
    rung_of: dict[int | None, int] = {None: len(rungs) - 1, **{steps: rung for rung, steps in enumerate(rungs)}}
    trials: dict[str, list[Trial]] = {}
    for trial in history.trials:
        if trial.request.design is not None and trial.request.budget.steps in rung_of:
            trials.setdefault(trial.request.card.digest, []).append(trial)
    return [_progress(one, rung_of) for one in trials.values()]


def _progress(trials: Sequence[Trial], rung_of: dict[int | None, int]) -> DesignProgress:
    states = {trial.state for trial in trials}
    finished = [trial for trial in trials if trial.state == "finished"]
    latest = max(finished, key=lambda trial: rung_of[trial.request.budget.steps], default=None)
    rung = -1 if latest is None else rung_of[latest.request.budget.steps]
    return DesignProgress(latest, rung, "pending" in states, "failed" in states)


def evolution_state(lives: Sequence[DesignProgress], rules: Hurdles) -> EvolutionState:
    """Replay the designs in the order of their first trials and return the resulting state.

    A hurdle is set whenever a further `batch` of designs was born, by those of the population that stand on the highest
    rung in use, and it is for designs born later. It waits until every earlier design has finished, so that it never
    changes afterwards. The last rung has no hurdle.
    """
    scores, last = _scores(lives, rules.objectives), len(rules.rungs) - 1
    drawn = draw(derive(0, "places"), len(lives), rules.population, rules.tournament)
    alive: list[int] = []
    hurdles: list[Hurdle] = []
    due: list[int] = []
    settled = True
    for index, life in enumerate(lives):
        waits = life.fertile and not life.under_way and life.rung < len(hurdles)
        if waits and hurdles[life.rung].cleared_by(_rows(scores, [index])):
            due.append(index)
        settled = settled and not life.under_way and not (due and due[-1] == index)
        if life.fertile:
            _enter(alive, index, scores, drawn[index], rules.population)
        if settled and (index + 1) % rules.batch == 0 and len(hurdles) < last:
            reached = [member for member in alive if lives[member].rung == len(hurdles)]
            hurdles += [Hurdle.of(_rows(scores, reached))] if reached else []
    return EvolutionState(tuple(alive), tuple(hurdles), tuple(due))


def _enter(alive: list[int], index: int, scores: Scores, drawn: Indices, population: int) -> None:
    """Add a design to the population; when full, it replaces the least fit of the members drawn."""
    if len(alive) < population:
        alive.append(index)
        return
    entrants = _rows(scores, [alive[place] for place in drawn])
    alive[drawn[int(fitness(entrants, entrants).argmin())]] = index


def _scores(lives: Sequence[DesignProgress], objectives: Sequence[Objective]) -> Scores:
    """Return the latest scores of every design, infinity where there are none."""
    known = [index for index, life in enumerate(lives) if life.latest is not None]
    found = score([life.latest for life in lives if life.latest is not None], objectives)
    values, violations = np.full((len(lives), found.values.shape[1]), np.inf), np.zeros(len(lives))
    values[known], violations[known] = found.values, found.violations
    return Scores(values, violations)


def _rows(scores: Scores, rows: Sequence[int]) -> Scores:
    return Scores(scores.values[rows], scores.violations[rows])


_MOST = 100  # the published population


@dataclass(frozen=True)
class Hurdles(RungSearch):
    """Mutate winners of tournaments, and train further those strictly above the mean of the population.

    The first `population` designs are random. Every child is the mutant of the fittest of `tournament` members and
    takes the place of the least fit of as many others; there is no ageing. All are evaluated for `min_steps` first.
    After each `batch` of designs a hurdle is set: the mean fitness of those members of the population that stand on the
    highest rung so far. Later designs that are strictly above it go on to the next rung, `eta` times as long, up to
    `max_steps`, and from there to the next hurdle. Members are compared by their latest scores, whatever the length of
    their training, as in the authors' experiment.

    With several goals, or where limits are broken, fitness is how many members of the same group are better. The member
    that a child replaces is drawn from a separate random stream, so that population and hurdles follow from the trials
    alone.
    """

    population: int = option(_MOST, "designs in the population", least=1)
    tournament: int = option(10, "members that are drawn for a tournament", least=1)
    batch: int = option(_MOST, "designs between two hurdles", least=1)
    max_steps: int = option(90, "training steps of the last rung", least=1)

    @staticmethod
    def for_budget(trials: int | None, steps: int | None) -> dict[str, int]:
        """Return three rungs, and batches that leave about half of a small budget to designs that face both hurdles."""
        population = _MOST if trials is None else min(_MOST, max(4, trials // 5))
        sizes = {"population": population, "tournament": min(10, max(2, population // 5)), "batch": population}
        return sizes | _rungs_for(steps, ratio=9)

    def ask(self, history: History, rng: Generator) -> Request:
        rungs = self.rungs
        lives = progress_of(history, rungs)
        now = evolution_state(lives, self)
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
        return tuple(hurdle.height for hurdle in evolution_state(progress_of(history, self.rungs), self).hurdles)

    def _parent(self, members: list[DesignProgress], rng: Generator) -> Trial:
        trials = [member.latest for member in members if member.latest is not None]
        drawn = draw(rng, 1, len(trials), self.tournament)[0]
        entrants = [trials[int(index)] for index in drawn]
        scores = score(entrants, self.objectives)
        return entrants[int(fitness(scores, scores).argmax())]
