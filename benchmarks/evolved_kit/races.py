"""Four ways to spend training steps on one evolution, and how soon each of them has found something good.

All but halving are the searcher `hurdles` itself: with one rung it is plain tournament evolution, in which every design
is trained for the same number of steps. So nothing differs but how long designs are trained. Halving draws at random.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.protocols import CardLike, Evaluator, Searcher
from formwright.core.records import Budget, History, Objective, Request, Trial
from formwright.core.rng import derive
from formwright.evaluate.context import Context
from formwright.search.proposals import Legal
from formwright.search.rungs import Halving, Hurdles, rungs_of
from formwright.space import Space

WAYS = ("hurdles", "fixed-short", "fixed-full", "halving")


@dataclass(frozen=True)
class Course:
    """Say what is searched, by which rungs designs are trained, and how large the population is."""

    space: Space
    objective: Objective
    legal: Legal
    rungs: tuple[int, ...]
    population: int = 20
    tournament: int = 4

    @property
    def eta(self) -> int:
        """Give by how much the rungs grow; refuse those that no searcher climbs."""
        eta = max(2, self.rungs[1] // self.rungs[0]) if len(self.rungs) > 1 else 2
        if rungs_of(self.rungs[0], self.rungs[-1], eta) != self.rungs:
            raise IllegalInput(f"the rungs {self.rungs} do not grow by one factor, which searchers need")
        return eta

    def searcher(self, way: str) -> Searcher:
        """Make the searcher of a way to spend steps."""
        first, last = self.rungs[0], self.rungs[-1]
        least, most = {"fixed-short": (first, first), "fixed-full": (last, last)}.get(way, (first, last))
        given: dict[str, Any] = {"min_steps": least, "max_steps": most, "eta": self.eta}
        if way == "halving":
            return Halving(self.space, (self.objective,), self.legal, **given)
        size = {"population": self.population, "tournament": self.tournament, "batch": self.population}
        return Hurdles(self.space, (self.objective,), self.legal, **size, **given)


@dataclass(frozen=True)
class Moment:
    """Tell the steps spent so far, and the design that the search would choose if it ended here."""

    steps: int
    chosen: CardLike
    budget: int


def race(
    course: Course, way: str, evaluator: Evaluator, steps: int, seed: int, context: Context | None = None
) -> list[Moment]:
    """Search until the steps are spent, resuming each design where it was; list how the choice changes."""
    searcher, trials, reached = course.searcher(way), list[Trial](), dict[str, int]()
    spent, moments = 0, list[Moment]()
    while spent < steps:
        # not by the way: those that evolve begin with the same designs, and are compared pair by pair
        request = searcher.ask(History(tuple(trials)), derive(seed, len(trials)))
        wanted = request.budget.steps or course.rungs[-1]
        spent += wanted - reached.get(request.card.digest, 0)
        reached[request.card.digest] = wanted
        trials.append(_told(len(trials), request, evaluator, context or Context(seed)))
        best = _choice(trials, course)
        if best is not None and (not moments or moments[-1].chosen != best.card):
            moments.append(Moment(spent, best.card, best.budget.steps or course.rungs[-1]))
    return moments


def _told(number: int, request: Request, evaluator: Evaluator, context: Context) -> Trial:
    try:
        return Trial(number, request, "finished", evaluator.evaluate(request, context))
    except EvaluationFailed:
        return Trial(number, request, "failed")


def _choice(trials: Sequence[Trial], course: Course) -> Request | None:
    """Choose among the designs that were trained longest the one with the best score."""
    finished = [trial for trial in trials if trial.observation is not None]
    if not finished:
        return None
    longest = max(_steps(trial, course) for trial in finished)
    sign = 1 if course.objective.direction == "max" else -1
    final = [trial for trial in finished if _steps(trial, course) == longest]
    return max(final, key=lambda trial: sign * _score(trial, course)).request


def _steps(trial: Trial, course: Course) -> int:
    return trial.request.budget.steps or course.rungs[-1]


def _score(trial: Trial, course: Course) -> float:
    assert trial.observation is not None
    return trial.observation.metrics[course.objective.name]


def steps_to(told: Iterable[tuple[float, bool]]) -> float | None:
    """Give the steps after which the choice is good and stays so; None where it is not in the end."""
    found = None
    for steps, good in told:
        found = (steps if found is None else found) if good else None
    return found


def in_full(evaluator: Evaluator, chosen: CardLike, name: str, context: Context) -> float | None:
    """Give the score of a choice after a whole training; None where that fails."""
    try:
        return evaluator.evaluate(Request(chosen, Budget.full()), context).metrics[name]
    except EvaluationFailed:
        return None
