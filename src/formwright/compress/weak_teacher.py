"""Whether a teacher knows more than the most common answer."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import nn

from formwright.core.rng import derive
from formwright.tasks.metrics import Metric, metric
from formwright.train.judge import ONE_ANSWER, answers, truths
from formwright.train.prepare import Prepared

_LEAST_SKILL = 0.2  # of the way from one answer for all rows to the best possible score
_DRAWS = 1000  # samples of the validation rows
_LOW = 0.05  # the share of samples below the lower end of the interval
_LABELS = 100  # beyond so many, only the most common are tried as the one answer


@dataclass(frozen=True)
class Weakness:
    """Say what a teacher scores on so many validation rows, and what one answer for all of them would."""

    metric: str
    rows: int
    score: float
    constant: float
    told_apart: bool

    def __str__(self) -> str:
        apart = "near" if self.told_apart else "not to be told apart from"
        return (
            f"the teacher is {apart} chance: {self.metric} {self.score:.4f} on {self.rows:,} validation rows, where "
            f"one answer for all of them has {self.constant:.4f}"
        )


def find_weakness(model: nn.Module, prepared: Prepared) -> Weakness | None:
    """Compare a teacher with one answer for all validation rows, by the task's metric and a bootstrap over the rows.

    It is weak where the difference may be chance, and where it is less than a fifth of what is possible. Tasks without
    one answer for each row are not judged.
    """
    if prepared.task.kind not in ONE_ANSWER:
        return None
    deciding, truth = metric(prepared.task.metric), truths(prepared.validation)
    found = answers(model, prepared, prepared.validation, np.arange(len(truth)))
    constant = _constant(truth, deciding, regression=prepared.task.kind == "regression")
    score, other = deciding.compute(found, truth), deciding.compute(constant, truth)
    apart = _lower(found, constant, truth, deciding) > 0
    if apart and score - other >= _LEAST_SKILL * (deciding.range[1] - other):
        return None
    return Weakness(deciding.name, len(truth), score, other, apart)


def _constant(truth: NDArray[np.float64], deciding: Metric, *, regression: bool) -> NDArray[np.float64]:
    """Give the one answer that scores best where all rows get it."""
    if regression:
        return np.full_like(truth, truth.mean())
    labels, counts = np.unique(truth, return_counts=True)
    tried = labels[np.argsort(-counts, kind="stable")][:_LABELS]
    same = [np.full_like(truth, label) for label in tried]
    return max(same, key=lambda one: deciding.compute(one, truth))


def _lower(
    found: NDArray[np.float64], constant: NDArray[np.float64], truth: NDArray[np.float64], deciding: Metric
) -> float:
    """Give the lower end of the interval of how much better the answers are, by resampling the rows."""
    rng, gains = derive(0, "teacher"), np.empty(_DRAWS)
    for draw in range(_DRAWS):
        rows = rng.integers(len(truth), size=len(truth))
        gains[draw] = deciding.compute(found[rows], truth[rows]) - deciding.compute(constant[rows], truth[rows])
    return float(np.quantile(gains, _LOW))
