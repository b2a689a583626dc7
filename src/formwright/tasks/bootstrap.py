"""Confidence intervals of scores by resampling the evaluated rows.

The percentile bootstrap: rows are drawn with replacement, as many as there are, and the metric is computed on each
draw. Two models are compared on the same draws (paired bootstrap), so that the difficulty of the rows cancels out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.checks import put
from formwright.core.errors import IllegalInput
from formwright.tasks.metrics import Values, metric

DRAWS = 1000
LEVEL = 0.95
_AT_ONCE = 1 << 20  # numbers held at once
_NONE_SEEN = 3.0  # the rule of three: an event not seen in n rows has a probability of at most 3/n, at 95 %

Interval = tuple[float, float]
Tables = Mapping[str, Values]  # by metric: what each row contributes, as `Metric.table` makes it
Outcome = Literal["better", "worse", "not told apart"]


@dataclass(frozen=True)
class Difference:
    """How much better one model is than another on the same rows; positive is better, whatever the metric.

    `interval` is that of the difference by the paired bootstrap, None if the predictions of one model are lost.
    `overlap` says whether the intervals of the two scores overlap. The `outcome` is "not told apart" if they overlap or
    the interval of the difference contains zero.
    """

    value: float
    interval: Interval | None
    overlap: bool
    outcome: Outcome = field(init=False)

    def __post_init__(self) -> None:
        zero = self.interval is not None and self.interval[0] <= 0 <= self.interval[1]
        same = self.overlap or zero or not self.value
        put(self, outcome="not told apart" if same else "better" if self.value > 0 else "worse")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Difference":
        """Read what `dataclasses.asdict` gave."""
        interval = data["interval"]
        whole = None if interval is None else (float(interval[0]), float(interval[1]))
        return cls(float(data["value"]), whole, bool(data["overlap"]))


def intervals(tables: Tables, rng: Generator) -> dict[str, Interval]:
    """Return the 95 % confidence interval of each metric."""
    return {
        name: _unanimous(table) or _percentiles(values)
        for (name, table), values in zip(tables.items(), _replicates([tables], rng)[0].values(), strict=True)
    }


def differences(first: Tables, second: Tables, rng: Generator) -> dict[str, Interval]:
    """Return the 95 % interval of how much better the first is than the second, for each metric of both."""
    names = [name for name in first if name in second]
    if any(len(first[name]) != len(second[name]) for name in names):
        raise IllegalInput("only answers to the same rows can be compared")
    sides = [{name: side[name] for name in names} for side in (first, second)]
    one, other = _replicates(sides, rng)
    return {name: _percentiles(sign_of(name) * (one[name] - other[name])) for name in names}


def overlap(first: Interval, second: Interval) -> bool:
    """Return whether two intervals have a value in common."""
    return first[0] <= second[1] and second[0] <= first[1]


def sign_of(name: str) -> int:
    """Return 1 for a metric of which more is better, -1 for one of which less is."""
    return 1 if metric(name).direction == "max" else -1


def _replicates(sides: Sequence[Tables], rng: Generator) -> list[dict[str, Values]]:
    """Compute the metrics of one or two models on the same draws of the rows."""
    found: list[dict[str, list[Values]]] = [{name: [] for name in side} for side in sides]
    sizes = {len(table) for side in sides for table in side.values()}
    for size in sizes:  # normally one size; tables of unequal length are resampled separately
        for counts in _draws(size, rng):
            for side, values in zip(sides, found, strict=True):
                for name, table in side.items():
                    if len(table) == size:
                        values[name].append(metric(name).scores(table, counts))
    return [{name: np.concatenate(values) for name, values in side.items()} for side in found]


def _draws(rows: int, rng: Generator) -> Iterator[Values]:
    """Draw rows with replacement; yield blocks (draws, rows) of how often each row was drawn."""
    if not rows:
        raise IllegalInput("there are no rows to resample")
    at_once = max(1, _AT_ONCE // rows)
    for first in range(0, DRAWS, at_once):
        number = min(at_once, DRAWS - first)
        drawn: NDArray[np.int64] = rng.integers(rows, size=(number, rows)) + rows * np.arange(number)[:, None]
        yield np.bincount(drawn.ravel(), minlength=number * rows).reshape(number, rows).astype(np.float64)


def _percentiles(values: Values) -> Interval:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _unanimous(table: Values) -> Interval | None:
    """Return the interval of a share that is 0 or 1 in all rows, where resampling shows no variation."""
    if table.shape[1] != 1 or not ((table == 0).all() or (table == 1).all()):
        return None
    most = min(_NONE_SEEN / len(table), 1.0)
    return (0.0, most) if table[0, 0] == 0 else (1 - most, 1.0)


Intervals = Mapping[str, Interval]


@dataclass(frozen=True)
class Majority:
    """A baseline that ignores the input: its description, its scores by metric, and how much better the model is.

    It is the majority class of the training rows, their mean, or the token frequencies.
    """

    answer: str
    scores: Mapping[str, float] = field(hash=False)
    differences: Mapping[str, Difference] = field(hash=False)


@dataclass(frozen=True)
class Evidence:
    """The number of rows, the 95 % interval of each score, and the baseline, None if there is none."""

    rows: int
    intervals: Intervals = field(hash=False)
    majority: Majority | None = None

    def beats_majority(self, metric: str) -> bool | None:
        """Return whether the model is significantly better than the baseline; None without a baseline."""
        if self.majority is None or metric not in self.majority.differences:
            return None
        return self.majority.differences[metric].outcome == "better"

    @classmethod
    def from_json(cls, data: Any) -> "Evidence":
        """Read what `dataclasses.asdict` gave; raise KeyError, TypeError or ValueError where it is no such thing."""
        known = data["majority"]
        majority = None
        if known is not None:
            differences = {name: Difference.from_json(one) for name, one in dict(known["differences"]).items()}
            scores = {name: float(value) for name, value in dict(known["scores"]).items()}
            majority = Majority(str(known["answer"]), scores, differences)
        found = {name: (float(low), float(high)) for name, (low, high) in dict(data["intervals"]).items()}
        return cls(int(data["rows"]), found, majority)
