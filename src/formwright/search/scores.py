"""Scores of trials: goals and limits as numbers, Pareto fronts, ranking, and targets for surrogates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import moocore
import numpy as np
from numpy.typing import ArrayLike, NDArray

from formwright.core.errors import IllegalInput
from formwright.core.records import Direction, History, Objective, Trial


@dataclass(frozen=True, eq=False)
class Scores:
    """Hold one row for each trial: the goals, smaller being better, and by how much limits are violated."""

    values: NDArray[np.float64]  # (trials, goals)
    violations: NDArray[np.float64]  # (trials,)


def goals_of(objectives: Sequence[Objective]) -> tuple[Objective, ...]:
    """Return the objectives to improve, those without a bound; raise `IllegalInput` when there is none."""
    goals = tuple(objective for objective in objectives if objective.bound is None)
    if not goals:
        limits = ", ".join(map(str, objectives))
        raise IllegalInput(
            f"there is nothing to improve{f', only limits: {limits}' if limits else ''}; "
            "add an objective such as 'accuracy:max'"
        )
    return goals


def score(trials: Sequence[Trial], objectives: Sequence[Objective]) -> Scores:
    """Read goals and limits from the metrics of finished trials.

    A limit without a metric was checked before the evaluation and counts as met.
    """
    goals = goals_of(objectives)
    metrics = [_metrics(trial) for trial in trials]
    values = np.empty((len(trials), len(goals)))
    for column, goal in enumerate(goals):
        values[:, column] = _column(trials, metrics, goal)
    violations = np.zeros(len(trials))
    for limit in objectives:
        if limit.bound is not None:
            violations += [violation(limit, found[limit.name]) if limit.name in found else 0.0 for found in metrics]
    return Scores(values, violations)


def violation(objective: Objective, value: float) -> float:
    """Return how far a value lies beyond the bound, as a share of the bound unless that is 0; 0 where it does not."""
    if objective.bound is None or objective.meets(value):
        return 0.0
    return abs(value - objective.bound) / (abs(objective.bound) or 1.0)


def _column(trials: Sequence[Trial], metrics: Sequence[Mapping[str, float]], goal: Objective) -> NDArray[np.float64]:
    try:
        column = np.array([found[goal.name] for found in metrics], dtype=np.float64)
    except KeyError:
        lacking = next(trial for trial in trials if goal.name not in _metrics(trial))
        known = ", ".join(sorted(_metrics(lacking)))
        raise IllegalInput(f"trial {lacking.number} has no metric {goal.name!r}; it has: {known}") from None
    return -column if goal.direction == "max" else column


def _metrics(trial: Trial) -> Mapping[str, float]:
    assert trial.observation is not None, "only finished trials have scores"
    return trial.observation.metrics


Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


def crowding(values: ArrayLike) -> Floats:
    """Return how far the neighbours of each row of one front are, as a mean share of the front's extent.

    Rows at an end of the front are infinitely far from others; a row that repeats an earlier one is not far at all.
    """
    points = np.asarray(values, dtype=np.float64)
    distance = np.zeros(len(points))
    _, first = np.unique(points, axis=0, return_index=True)
    first = np.sort(first)
    distance[first] = np.mean([_gaps(column) for column in points[first].T], axis=0)
    return distance


def hypervolume(values: ArrayLike, reference: ArrayLike, directions: Sequence[Direction]) -> float:
    """Return the volume between the rows and a reference point that is worse than they are in every column."""
    points = _smaller_is_better(values, directions)
    worst = _smaller_is_better(np.atleast_2d(np.asarray(reference, dtype=np.float64)), directions)[0]
    inside = points[(points < worst).all(axis=1)]
    if not len(inside):
        return 0.0
    if points.shape[1] == 1:
        return float(worst[0] - inside.min())
    return float(moocore.hypervolume(inside, ref=worst))


def front(history: History, objectives: Sequence[Objective]) -> tuple[Trial, ...]:
    """Return the finished trials within all limits that no other dominates, in the order of their numbers.

    Only trials at the largest budget count: scores after few steps are not comparable with those after many.
    """
    trials = longest(history.finished)
    scores = score(trials, objectives)
    feasible = np.flatnonzero(scores.violations == 0.0)
    if not len(feasible):
        return ()
    best = feasible[next(_peel(scores.values[feasible]))]
    return tuple(trials[index] for index in np.sort(best))


def best_of(history: History, objectives: Sequence[Objective]) -> tuple[Trial, ...]:
    """Return the finished trials within all limits at the largest budget so far, the best first.

    With several goals these are the front's: first the one that is best in the first goal, then the less crowded.
    """
    several = len(goals_of(objectives)) > 1
    trials = front(history, objectives) if several else longest(history.finished)
    scores = score(trials, objectives)
    order = [index for index in best_first(scores) if scores.violations[index] == 0.0]
    if order:
        leader = min(sorted(order), key=lambda index: scores.values[index, 0])  # the first of equals
        order = [leader, *(index for index in order if index != leader)]
    return tuple(trials[index] for index in order)


def best_first(scores: Scores, most: int | None = None) -> list[int]:
    """Return the rows from the best to the worst, the first `most` of them.

    A row within the limits comes before one that is not, and a smaller violation before a larger one; then the better
    front, and within a front the less crowded row.
    """
    order: list[int] = []
    for members in _fronts(scores):
        spread = crowding(scores.values[members])
        order += members[np.argsort(-spread, kind="stable")].tolist()
        if most is not None and len(order) >= most:
            break
    return order[:most]


def ranks(scores: Scores) -> Indices:
    """Return the front that each row belongs to, rows outside the limits behind all others."""
    rank = np.zeros(len(scores.violations), dtype=np.intp)
    for number, members in enumerate(_fronts(scores)):
        rank[members] = number
    return rank


def _fronts(scores: Scores) -> Iterator[Indices]:
    feasible = np.flatnonzero(scores.violations == 0.0)
    if len(feasible):
        yield from (feasible[members] for members in _peel(scores.values[feasible]))
    for violation in np.unique(scores.violations[scores.violations > 0.0]):
        yield np.flatnonzero(scores.violations == violation)


def _peel(points: Floats) -> Iterator[Indices]:
    """Yield the rows of each front, best first; lazily, for callers that need the first fronts only."""
    left = np.arange(len(points))
    if points.shape[1] == 1:
        for value in np.unique(points):
            yield np.flatnonzero(points[:, 0] == value)
        return
    while len(left):
        best = moocore.is_nondominated(points[left], keep_weakly=True)
        yield left[best]
        left = left[~best]


def _gaps(column: Floats) -> Floats:
    order = np.argsort(column, kind="stable")
    ordered = column[order]
    extent = ordered[-1] - ordered[0]
    gaps = np.full(len(column), np.inf)
    # a constant column says nothing about crowding
    gaps[order[1:-1]] = (ordered[2:] - ordered[:-2]) / extent if extent else 0.0
    return gaps


def longest(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that had the largest budget of all."""
    most = max((_steps(trial) for trial in trials), default=0)
    return [trial for trial in trials if _steps(trial) == most]


def _steps(trial: Trial) -> float:
    steps = trial.request.budget.steps
    return np.inf if steps is None else steps


def _smaller_is_better(values: ArrayLike, directions: Sequence[Direction]) -> Floats:
    points: Floats = np.asarray(values, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != len(directions):
        raise IllegalInput(f"{len(directions)} directions need rows of as many values, not shape {points.shape}")
    signs: Floats = np.array([-1.0 if direction == "max" else 1.0 for direction in directions])
    return np.multiply(points, signs)


def targets(trials: Sequence[Trial], objectives: Sequence[Objective]) -> Floats:
    """Return how good each trial is, with mean 0 and variance 1.

    With one goal and no violated limit this is the score. Otherwise there is no common unit, and only the order from
    best to worst counts.
    """
    scores = score(trials, objectives)
    if scores.values.shape[1] == 1 and not scores.violations.any():
        return _standard(-scores.values[:, 0])
    place = np.empty(len(trials))
    place[best_first(scores)] = np.arange(len(trials))
    return _standard(-place)


def _standard(values: Floats) -> Floats:
    centred: Floats = values - values.mean() if len(values) else values
    spread = centred.std() if len(values) else 0.0
    return centred / spread if spread > 0 else np.zeros_like(centred)
