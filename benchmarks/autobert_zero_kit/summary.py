"""What the runs come to: means with intervals, ranks, steps saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autobert_zero_kit.runs import Row
from formwright.core.rng import derive

Floats = NDArray[np.float64]
RESAMPLES = 2_000
RANKED = ("inherited", "scratch", "params", "long")  # what is known of a design: short scores, size, long score


def kendall(first: Sequence[float], second: Sequence[float]) -> float:
    """Give Kendall's tau-b of two scores of the same designs; 0 where one of them tells none apart."""
    # scipy's takes milliseconds, which thousands of resamples have no use for
    above, over = (np.sign(np.subtract.outer(scores, scores)) for scores in (first, second))
    pairs = np.sqrt(np.abs(above).sum() * np.abs(over).sum())
    return float((above * over).sum() / pairs) if pairs else 0.0


def interval(groups: Sequence[Floats], statistic: Callable[[Floats], float]) -> list[float]:
    """Give the mean of a statistic over groups, and its 90 % bootstrap interval, rows being drawn within each group."""
    rng = derive(0, "bootstrap")

    def again() -> float:
        return float(np.mean([statistic(group[rng.integers(len(group), size=len(group))]) for group in groups]))

    drawn = [again() for _ in range(RESAMPLES)]
    return [float(np.mean([statistic(group) for group in groups])), *np.quantile(drawn, (0.05, 0.95)).tolist()]


def mean_interval(sample: Sequence[float]) -> list[float]:
    """Give a mean and its 90 % bootstrap interval."""
    drawn = derive(0, "bootstrap").choice(sample, (RESAMPLES, len(sample))).mean(axis=1)
    return [float(np.mean(sample)), *np.quantile(drawn, (0.05, 0.95)).tolist()]


def ranking(groups: Sequence[Floats]) -> dict[str, Any]:
    """Compare short scores with long ones; each group is a seed, with a row of `RANKED` for each design.

    `gain` is how much better, in tau, inherited scores rank designs than scores from scratch; parameters rank them for
    nothing.
    """
    found = {name: interval(groups, partial(_tau, name=name)) for name in RANKED[:-1]}
    gain = interval(groups, lambda rows: _tau(rows, "inherited") - _tau(rows, "scratch"))
    return {"designs": sum(map(len, groups)), **found, "gain": gain}


def _tau(rows: Floats, name: str) -> float:
    """Give tau of a column with the scores after long training."""
    return kendall(rows[:, RANKED.index(name)].tolist(), rows[:, -1].tolist())


def steps_to(marks: Sequence[int], losses: Sequence[float], target: float) -> float | None:
    """Give after how many steps a loss first reaches a target, in between two marks by a line; None where never."""
    for place, loss in enumerate(losses):
        if loss > target:
            continue
        if place == 0:
            return float(marks[0])
        before = losses[place - 1]
        share = (before - target) / (before - loss)
        return float(marks[place - 1] + share * (marks[place] - marks[place - 1]))
    return None


def saved(row: Row) -> float:
    """Give the share of steps that inherited weights save until the lowest loss from scratch is reached; 0 if never."""
    marks, scratch = row["marks"], row["scratch"]
    target = min(scratch)
    needed, found = steps_to(marks, scratch, target), steps_to(marks, row["inherited"], target)
    return 1 - found / needed if needed and found is not None else 0.0


def best_so_far(scores: Sequence[float | None]) -> list[float]:
    """Give the highest score up to each trial; a failed one has none, and before the first score there is 0."""
    return list(accumulate((0.0 if score is None else score for score in scores), max))


def best_trial(row: Row) -> Row:
    """Give the first of the best trials of a search."""
    return max((trial for trial in row["trials"] if "score" in trial), key=lambda trial: float(trial["score"]))


def differences(scores: Mapping[str, Sequence[float]], against: Mapping[str, str]) -> dict[str, list[float]]:
    """Say, with its interval over the seeds, how much better than another each design is that should be better.

    `against` names that one for each of the others. Designs that were not trained are left out.
    """
    pairs = [(better, other) for other, better in against.items() if other in scores and better in scores]
    return {
        f"{better} against {other}": mean_interval(np.subtract(scores[better], scores[other]).tolist())
        for better, other in pairs
    }
