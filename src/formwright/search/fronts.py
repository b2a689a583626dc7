"""Fronts of a set of points: sorting, crowding and hypervolume."""

from collections.abc import Iterator, Sequence

import moocore
import numpy as np
from numpy.typing import ArrayLike, NDArray

from formwright.core.errors import IllegalInput
from formwright.core.records import Direction, History, Objective, Trial
from formwright.search.scores import Scores, goals_of, score

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


def non_dominated_rank(values: ArrayLike, directions: Sequence[Direction]) -> Indices:
    """Return the front that each row belongs to: 0 where nothing dominates it, 1 where only rows of front 0 do, ...

    Equal rows do not dominate each other.
    """
    points = _smaller_is_better(values, directions)
    rank = np.zeros(len(points), dtype=np.intp)
    for number, members in enumerate(_peel(points)):
        rank[members] = number
    return rank


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
    """Return the finished trials within all limits that no other one beats in every goal, in the order asked.

    Only trials at the largest budget so far count: the score after a few steps says little beside that after many.
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
    """Yield the rows of each front, best first; a caller that needs the first fronts only pays for no others."""
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
    # where every row has the same value, this column tells nothing about who is crowded
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
