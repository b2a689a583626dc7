"""How answers are judged: pure functions of predictions and truth, by name."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from formwright.core.errors import IllegalInput, UnknownName
from formwright.tasks.bleu import bleu, same_text, same_text_rows
from formwright.tasks.multi_label import macro_f1, micro_f1, subset_accuracy, subset_hits
from formwright.tasks.resampled import (
    BLEU,
    F1,
    MACRO_F1,
    MATTHEWS,
    MICRO_F1,
    PEARSON,
    PERPLEXITY,
    SPEARMAN,
    ByRow,
    Values,
    any_numbers,
    shares,
)
from formwright.tasks.span_metrics import exact_match, exact_rows, span_f1, span_f1_rows


@dataclass(frozen=True)
class Metric:
    """A name, a function of (predictions, truth), which way is better, and the range of possible values.

    Both are labels or scores, or rows of 0 and 1 where each row may have several labels; for answers in words they are
    a text for each row, and the texts that are right. `own_rows` computes it on resampled rows; a metric of numbers can
    do without.
    """

    name: str
    compute: Callable[[Any, Any], float]
    direction: Literal["max", "min"] = "max"
    range: tuple[float, float] = (0.0, 1.0)
    own_rows: ByRow | None = field(default=None, repr=False)

    @property
    def by_row(self) -> ByRow:
        """Say how it is computed on resampled rows."""
        return self.own_rows or any_numbers(self.compute)


def accuracy(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Give the share of predictions that are right."""
    return float(_hits(predictions, truth).mean())


def _hits(predictions: ArrayLike, truth: ArrayLike) -> Values:
    guessed, true = _pair(predictions, truth)
    hits: Values = (guessed == true).astype(np.float64)
    return hits


def f1(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Give the harmonic mean of precision and recall of label 1; 0 where label 1 is neither true nor predicted."""
    guessed, true = _pair(predictions, truth)
    hits = float(((guessed == 1) & (true == 1)).sum())
    wanted = float((guessed == 1).sum() + (true == 1).sum())
    return 2 * hits / wanted if wanted else 0.0


def matthews(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Give Matthews' correlation of predicted and true labels, of any number; 0 where either is constant."""
    guessed, true = _pair(predictions, truth)
    names = np.unique(np.concatenate((guessed, true)))
    return _correlation(
        (guessed[:, None] == names).astype(np.float64),
        (true[:, None] == names).astype(np.float64),
    )


def pearson(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Give the linear correlation of scores; 0 where either side is constant."""
    guessed, true = _pair(predictions, truth)
    return _correlation(guessed[:, None], true[:, None])


def spearman(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Give the correlation of the ranks of scores, equal scores sharing their mean rank; 0 where either is constant."""
    guessed, true = _pair(predictions, truth)
    return _correlation(_ranks(guessed)[:, None], _ranks(true)[:, None])


def perplexity(losses: ArrayLike, weights: ArrayLike) -> float:
    """Give the exponential of the mean loss, in nats, of which each has a weight: the tokens it is the mean of."""
    values, counts = _pair(losses, weights)
    return float(np.exp((values * counts).sum() / counts.sum()))


WRITTEN = ("bleu", "same-text")  # metrics of texts that the model has to write first
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", accuracy, own_rows=shares(_hits)),
        Metric("f1", f1, own_rows=F1),
        Metric("matthews", matthews, range=(-1.0, 1.0), own_rows=MATTHEWS),
        Metric("pearson", pearson, range=(-1.0, 1.0), own_rows=PEARSON),
        Metric("spearman", spearman, range=(-1.0, 1.0), own_rows=SPEARMAN),
        Metric("perplexity", perplexity, "min", (1.0, math.inf), own_rows=PERPLEXITY),
        Metric("micro-f1", micro_f1, own_rows=MICRO_F1),
        Metric("macro-f1", macro_f1, own_rows=MACRO_F1),
        Metric("subset-accuracy", subset_accuracy, own_rows=shares(subset_hits)),
        Metric("exact", exact_match, own_rows=shares(exact_rows)),
        Metric("span-f1", span_f1, own_rows=shares(span_f1_rows)),
        Metric("bleu", bleu, range=(0.0, 100.0), own_rows=BLEU),
        Metric("same-text", same_text, own_rows=shares(same_text_rows)),
    )
}


def without_writing(names: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """Leave out the metrics for which a model writes texts, which takes longer than all others, but for the wanted."""
    return tuple(name for name in names if name not in WRITTEN or name in wanted)


def metric(name: str) -> Metric:
    """Return the metric of that name."""
    if name not in METRICS:
        raise UnknownName("metric", name, METRICS)
    return METRICS[name]


def _correlation(left: Values, right: Values) -> float:
    """Correlate two matrices (rows, columns), adding up the covariances of their columns; 0 if either is constant."""
    if (left == left[0]).all() or (right == right[0]).all():
        return 0.0
    left, right = left - left.mean(0), right - right.mean(0)
    spread = float(np.sqrt((left * left).sum() * (right * right).sum()))
    return float((left * right).sum()) / spread


def _pair(predictions: ArrayLike, truth: ArrayLike) -> tuple[Values, Values]:
    first, second = np.asarray(predictions, np.float64), np.asarray(truth, np.float64)
    if first.shape != second.shape or first.ndim != 1 or not first.size:
        raise IllegalInput(f"a metric needs two rows of equally many values, not {first.shape} and {second.shape}")
    return first, second


def _ranks(values: Values) -> Values:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place]
