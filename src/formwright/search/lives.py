"""What became of the designs of a staged evolution: who lives, which hurdles stand, and who earned further steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formwright.core.records import History, Objective, Trial
from formwright.core.rng import derive
from formwright.search.scores import Scores, score
from formwright.search.tournaments import Floats, Indices, clears, draw, height, losers


@dataclass(frozen=True)
class Life:
    """Follow one design through its trials: the last finished one and its rung, and what else is known."""

    latest: Trial | None
    rung: int
    under_way: bool
    failed: bool

    @property
    def fertile(self) -> bool:
        """Tell whether the design has a score and never failed, so that it may be a parent."""
        return self.latest is not None and not self.failed


@dataclass(frozen=True, eq=False)
class Hurdle:
    """Hold the mean fitness of some trials, and these trials' scores."""

    members: Scores
    height: float

    @classmethod
    def of(cls, members: Scores) -> Hurdle:
        """Set the hurdle of some trials."""
        return cls(members, float(height(fitness(members, members))))

    def cleared_by(self, scores: Scores) -> bool:
        """Tell whether the only row of some scores is strictly above the hurdle."""
        return bool(clears(fitness(scores, self.members)[0], self.height))


@dataclass(frozen=True, eq=False)
class Standing:
    """Say how things stand: who is in the population, which hurdles there are, and who is due for the next rung."""

    alive: tuple[int, ...]
    hurdles: tuple[Hurdle, ...]
    due: tuple[int, ...]


@dataclass(frozen=True)
class Rules:
    """Say how large the population and its tournaments are, and how many designs are born from hurdle to hurdle."""

    population: int
    tournament: int
    batch: int


def fitness(scores: Scores, reference: Scores) -> Floats:
    """Return how fit each row is beside a reference, as a number of which larger is better.

    One goal is taken as it is, unless a row of the reference breaks a limit. Several goals, or broken limits, have no
    common unit: then it counts how many rows of the reference are better.
    """
    if scores.values.shape[1] == 1 and not reference.violations.any():
        return np.where(scores.violations > 0, -np.inf, -scores.values[:, 0])
    values, others = scores.values[:, np.newaxis], reference.values[np.newaxis]  # (rows, reference, goals)
    beaten = (others <= values).all(axis=2) & (others < values).any(axis=2)
    broken, others_broken = scores.violations[:, np.newaxis], reference.violations[np.newaxis]
    worse = (others_broken < broken) | ((others_broken == broken) & beaten)
    number: Floats = worse.sum(axis=1).astype(np.float64)
    return -number


def lives_of(history: History, rungs: Sequence[int]) -> list[Life]:
    """List the designs of a history in the order in which they were first asked for.

    A trial without a budget is on the last rung; one whose budget is no rung, or whose design is not known, is left
    out.
    """
    rung_of: dict[int | None, int] = {None: len(rungs) - 1, **{steps: rung for rung, steps in enumerate(rungs)}}
    trials: dict[str, list[Trial]] = {}
    for trial in history.trials:
        if trial.request.design is not None and trial.request.budget.steps in rung_of:
            trials.setdefault(trial.request.card.digest, []).append(trial)
    return [_life(one, rung_of) for one in trials.values()]


def _life(trials: Sequence[Trial], rung_of: dict[int | None, int]) -> Life:
    states = {trial.state for trial in trials}
    finished = [trial for trial in trials if trial.state == "finished"]
    latest = max(finished, key=lambda trial: rung_of[trial.request.budget.steps], default=None)
    rung = -1 if latest is None else rung_of[latest.request.budget.steps]
    return Life(latest, rung, "pending" in states, "failed" in states)


def standing(lives: Sequence[Life], objectives: Sequence[Objective], last: int, rules: Rules) -> Standing:
    """Go through all lives in the order of their births and return how things stand at the end.

    A hurdle is set whenever a further `batch` of designs was born, by those of the population that stand on the
    highest rung in use, and it is for designs born later. It waits until every design before it has ended its way, so
    that it never changes afterwards. The rung `last` has no hurdle.
    """
    scores = _scores(lives, objectives)
    drawn = draw(derive(0, "places"), len(lives), rules.population, rules.tournament)
    alive: list[int] = []
    hurdles: list[Hurdle] = []
    due: list[int] = []
    settled = True
    for index, life in enumerate(lives):
        if _is_due(life, hurdles, scores, index):
            due.append(index)
        settled = settled and not life.under_way and not (due and due[-1] == index)
        if life.fertile:
            _enter(alive, index, scores, drawn[index], rules.population)
        if settled and (index + 1) % rules.batch == 0 and len(hurdles) < last:
            reached = [member for member in alive if lives[member].rung == len(hurdles)]
            hurdles += [Hurdle.of(_rows(scores, reached))] if reached else []
    return Standing(tuple(alive), tuple(hurdles), tuple(due))


def _is_due(life: Life, hurdles: Sequence[Hurdle], scores: Scores, index: int) -> bool:
    if not life.fertile or life.under_way or life.rung >= len(hurdles):
        return False
    return hurdles[life.rung].cleared_by(_rows(scores, [index]))


def _enter(alive: list[int], index: int, scores: Scores, drawn: Indices, population: int) -> None:
    """Let a design take a free place, or that of the least fit of the places drawn."""
    if len(alive) < population:
        alive.append(index)
        return
    entrants = _rows(scores, [alive[place] for place in drawn])
    alive[drawn[int(losers(fitness(entrants, entrants)))]] = index


def _scores(lives: Sequence[Life], objectives: Sequence[Objective]) -> Scores:
    """Give the latest scores of every life, infinitely bad where there are none."""
    known = [index for index, life in enumerate(lives) if life.latest is not None]
    found = score([life.latest for life in lives if life.latest is not None], objectives)
    values, violations = np.full((len(lives), found.values.shape[1]), np.inf), np.zeros(len(lives))
    values[known], violations[known] = found.values, found.violations
    return Scores(values, violations)


def _rows(scores: Scores, rows: Sequence[int]) -> Scores:
    return Scores(scores.values[rows], scores.violations[rows])
