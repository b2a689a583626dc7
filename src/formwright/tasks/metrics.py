"""Metrics: pure functions of predictions and truth, by name."""

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.extras import need
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

Flags = NDArray[np.bool_]


def micro_f1(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Return the F1 over all labels of all rows; 0 if none is true and none predicted."""
    guessed, true = _label_pair(predictions, truth)
    return float(_f1((guessed & true).sum(), guessed.sum() + true.sum()))


def macro_f1(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Return the mean F1 of the labels; that of a label which is never true and never predicted is 0."""
    guessed, true = _label_pair(predictions, truth)
    return float(_f1((guessed & true).sum(0), guessed.sum(0) + true.sum(0)).mean())


def subset_accuracy(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Return the share of rows whose labels are all right."""
    return float(subset_hits(predictions, truth).mean())


def subset_hits(predictions: ArrayLike, truth: ArrayLike) -> NDArray[np.float64]:
    """Return 1 for each row whose labels are all right, and 0 for the others."""
    guessed, true = _label_pair(predictions, truth)
    hits: NDArray[np.float64] = (guessed == true).all(1).astype(np.float64)
    return hits


def best_constant(truth: ArrayLike) -> tuple[int, ...]:
    """Return the constant answer with the best micro-F1 on some rows: the multi-label majority class.

    It consists of the commonest labels, as many as give the best F1.
    """
    true = np.asarray(truth, bool)
    counts = true.sum(0)
    order = np.argsort(-counts, kind="stable")
    hits, sizes = np.cumsum(counts[order]), np.arange(1, len(order) + 1)
    most = int(_f1(hits, sizes * len(true) + counts.sum()).argmax()) + 1
    chosen = set(order[:most].tolist())
    return tuple(int(place in chosen) for place in range(len(order)))


def _f1(hits: Any, wanted: Any) -> Any:
    return 2 * hits / np.maximum(wanted, 1)


def _label_pair(predictions: ArrayLike, truth: ArrayLike) -> tuple[Flags, Flags]:
    guessed, true = np.asarray(predictions, bool), np.asarray(truth, bool)
    if guessed.shape != true.shape or guessed.ndim != 2 or not guessed.size:
        raise IllegalInput(f"a metric of several labels needs two equal tables, not {guessed.shape} and {true.shape}")
    return guessed, true


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def exact_match(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> float:
    """Return the share of predictions that equal one of the row's answers, ignoring case, punctuation and articles.

    If a row has no answers, or only articles and punctuation, the empty prediction is right.
    """
    return _mean(exact_rows(predictions, answers))


def exact_rows(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> list[float]:
    """Return 1 for each row that is answered exactly, and 0 for the others."""
    return _span_rows(lambda words, golden: float(words == golden), predictions, answers)


def span_f1(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> float:
    """Return the mean F1 of the words that a prediction shares with the most similar of the row's answers.

    Case, punctuation and articles are ignored. If a row has no answers, or only articles and punctuation, the empty
    prediction is right.
    """
    return _mean(span_f1_rows(predictions, answers))


def span_f1_rows(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> list[float]:
    """Return the F1 of each row."""
    return _span_rows(_overlap, predictions, answers)


def _mean(scores: list[float]) -> float:
    return sum(scores) / len(scores)


def _span_rows(
    compare: Callable[[list[str], list[str]], float], predictions: Sequence[str], answers: Sequence[Sequence[str]]
) -> list[float]:
    if len(predictions) != len(answers) or not len(predictions):
        raise IllegalInput(f"a metric needs equally many rows of each; got {len(predictions)} and {len(answers)}")
    words = map(_normalised_words, predictions)
    golden = ([found for found in map(_normalised_words, row) if found] or [[]] for row in answers)
    return [max(compare(said, found) for found in row) for said, row in zip(words, golden, strict=True)]


def _normalised_words(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def _overlap(words: list[str], golden: list[str]) -> float:
    if not words or not golden:
        return float(words == golden)
    return 2 * (Counter(words) & Counter(golden)).total() / (len(words) + len(golden))


_EXTRA = "translation"


def check_bleu() -> None:
    """Raise `MissingExtra` if sacrebleu is not installed."""
    need("sacrebleu", _EXTRA)


def bleu(translations: Sequence[str], references: Sequence[str]) -> float:
    """Return the BLEU of a corpus, from 0 to 100: sacrebleu's own, cased, with tokens `13a` and one reference each."""
    if len(translations) != len(references) or not references:
        raise IllegalInput(
            f"BLEU needs as many translations as references, not {len(translations)} and {len(references)}"
        )
    found = need("sacrebleu", _EXTRA).corpus_bleu(list(translations), [list(references)])
    return float(found.score)


def same_text(translations: Sequence[str], references: Sequence[str]) -> float:
    """Return the share of translations that equal their reference exactly."""
    rows = same_text_rows(translations, references)
    return sum(rows) / len(rows)


def same_text_rows(translations: Sequence[str], references: Sequence[str]) -> list[float]:
    """Return 1 for each translation that equals its reference exactly, and 0 for the others."""
    if len(translations) != len(references) or not references:
        raise IllegalInput(f"as many translations as references are compared, not {len(translations)}")
    return [float(one == other) for one, other in zip(translations, references, strict=True)]


@dataclass(frozen=True)
class Metric:
    """A name, a function of (predictions, truth), which way is better, and the range of possible values.

    Both are labels or scores, or rows of 0 and 1 for multi-label tasks; for text answers they are one text per row and
    the accepted texts. `own_rows` computes the metric on resampled rows; metrics of numbers have a generic fallback.
    """

    name: str
    compute: Callable[[Any, Any], float]
    direction: Literal["max", "min"] = "max"
    range: tuple[float, float] = (0.0, 1.0)
    own_rows: ByRow | None = field(default=None, repr=False)

    @property
    def by_row(self) -> ByRow:
        """Return how it is computed on resampled rows."""
        return self.own_rows or any_numbers(self.compute)


def accuracy(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Return the share of predictions that are right."""
    return float(_hits(predictions, truth).mean())


def _hits(predictions: ArrayLike, truth: ArrayLike) -> Values:
    guessed, true = _pair(predictions, truth)
    hits: Values = (guessed == true).astype(np.float64)
    return hits


def f1(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Return the harmonic mean of precision and recall of label 1; 0 where label 1 is neither true nor predicted."""
    guessed, true = _pair(predictions, truth)
    hits = float(((guessed == 1) & (true == 1)).sum())
    wanted = float((guessed == 1).sum() + (true == 1).sum())
    return 2 * hits / wanted if wanted else 0.0


def matthews(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Return Matthews' correlation of predicted and true labels, of any number; 0 where either is constant."""
    guessed, true = _pair(predictions, truth)
    names = np.unique(np.concatenate((guessed, true)))
    return _correlation((guessed[:, None] == names).astype(np.float64), (true[:, None] == names).astype(np.float64))


def pearson(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Return the linear correlation of scores; 0 where either side is constant."""
    guessed, true = _pair(predictions, truth)
    return _correlation(guessed[:, None], true[:, None])


def spearman(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Return the rank correlation of scores, with mean ranks for ties; 0 where either side is constant."""
    guessed, true = _pair(predictions, truth)
    return _correlation(_ranks(guessed)[:, None], _ranks(true)[:, None])


def perplexity(losses: ArrayLike, weights: ArrayLike) -> float:
    """Return the exponential of the weighted mean loss in nats; the weights are numbers of tokens."""
    values, counts = _pair(losses, weights)
    return float(np.exp((values * counts).sum() / counts.sum()))


WRITTEN = ("bleu", "same-text")  # metrics of generated text
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
    """Leave out the metrics that need generated text, which is slow, except for the wanted ones."""
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
    return (np.cumsum(counts) - (counts - 1) / 2)[place]
