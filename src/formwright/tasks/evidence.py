"""What one split says about a model's scores: their intervals, and what an answer that ignores the input scores."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from formwright.tasks.bootstrap import Difference, Interval

Intervals = Mapping[str, Interval]


@dataclass(frozen=True)
class Majority:
    """An answer that ignores the input, in words, its scores by metric, and how much better the model is.

    It is the majority class of the training rows, their mean, or how frequent tokens are in them.
    """

    answer: str
    scores: Mapping[str, float] = field(hash=False)
    differences: Mapping[str, Difference] = field(hash=False)


@dataclass(frozen=True)
class Evidence:
    """The number of rows, the 95 % interval of each score, and the answer to beat, None where there is none."""

    rows: int
    intervals: Intervals = field(hash=False)
    majority: Majority | None = None

    def beats_majority(self, metric: str) -> bool | None:
        """Tell whether the model is surely better than an answer that ignores the input; None where none is known."""
        if self.majority is None or metric not in self.majority.differences:
            return None
        return self.majority.differences[metric].outcome == "better"

    @classmethod
    def from_json(cls, data: Any) -> "Evidence":
        """Read what `dataclasses.asdict` gave; raise KeyError, TypeError or ValueError where it is no such thing."""
        told = data["majority"]
        majority = None
        if told is not None:
            differences = {name: Difference.from_json(one) for name, one in dict(told["differences"]).items()}
            majority = Majority(str(told["answer"]), _numbers(told["scores"]), differences)
        found = {name: (float(low), float(high)) for name, (low, high) in dict(data["intervals"]).items()}
        return cls(int(data["rows"]), found, majority)


def _numbers(data: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in dict(data).items()}
