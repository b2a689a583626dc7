"""What the trials so far say about the objectives, as numbers of which smaller is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.core.records import Objective, Trial


@dataclass(frozen=True, eq=False)
class Scores:
    """Hold one row for each trial: the goals, smaller being better, and by how much the limits are violated."""

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

    A limit that an observation says nothing about was checked before the evaluation, and counts as kept.
    """
    goals = goals_of(objectives)
    metrics = [_metrics(trial) for trial in trials]
    values = np.empty((len(trials), len(goals)))
    for column, goal in enumerate(goals):
        values[:, column] = _column(trials, metrics, goal)
    violations = np.zeros(len(trials))
    for limit in objectives:
        if limit.bound is not None:
            violations += [_violation(found, limit) for found in metrics]
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


def _violation(metrics: Mapping[str, float], limit: Objective) -> float:
    value = metrics.get(limit.name)
    return 0.0 if value is None else violation(limit, value)


def _metrics(trial: Trial) -> Mapping[str, float]:
    assert trial.observation is not None, "only finished trials have scores"
    return trial.observation.metrics
