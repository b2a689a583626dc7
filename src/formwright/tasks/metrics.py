"""Metrics by name: pure functions of predictions and truth, and the same on many resamples of the rows at once.

Other packages add theirs by an entry point in `formwright.metrics`.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formwright.core.errors import IllegalInput
from formwright.core.extras import need
from formwright.core.registry import Registry
from formwright.tasks.name_metrics import entity_table, relation_table, share, tag_table

Values = NDArray[np.float64]
_EXTRA = "translation"
_CONSTANT = 1e-12  # variance, relative to that of all rows, below which a resample is constant
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True)
class Metric:
    """A metric of predictions and truth, which way is better, and the range of possible values.

    Predictions and truth are labels or scores, or rows of 0 and 1 for multi-label tasks; for text answers they are one
    text per row and the accepted texts, and for tags and relations the names of labels. `table` turns them into the
    contribution of each row, (rows, columns). `scores` turns that table and how often each draw contains each row,
    (draws, rows), into one score for each draw. With every row once, that score is the metric; `whole` computes it with
    smaller rounding errors. `written` metrics compare generated texts, and `named` ones names of labels.
    """

    name: str
    table: Callable[[Any, Any], Values]
    scores: Callable[[Values, Values], Values]
    whole: Callable[[Any, Any], float] | None = None
    direction: Literal["max", "min"] = "max"
    range: tuple[float, float] = (0.0, 1.0)
    written: bool = False
    named: bool = False

    def compute(self, predictions: Any, truth: Any) -> float:
        """Return the score of all rows."""
        if self.whole is not None:
            return self.whole(predictions, truth)
        table = self.table(predictions, truth)
        return float(self.scores(table, np.ones((1, len(table))))[0])


def metric(name: str) -> Metric:
    """Return the metric of that name."""
    return METRICS.get(name)


def without_writing(names: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """Leave out the metrics that need generated text, which is slow, except for the wanted ones."""
    return tuple(name for name in names if name in wanted or not metric(name).written)


# labels and scores, one for each row


def _pair(predictions: ArrayLike, truth: ArrayLike) -> tuple[Values, Values]:
    first, second = np.asarray(predictions, np.float64), np.asarray(truth, np.float64)
    if first.shape != second.shape or first.ndim != 1 or not first.size:
        raise IllegalInput(f"a metric needs two rows of equally many values, not {first.shape} and {second.shape}")
    return first, second


def _pairs(predictions: ArrayLike, truth: ArrayLike) -> Values:
    return np.stack(_pair(predictions, truth), axis=1)


def _hits(predictions: ArrayLike, truth: ArrayLike) -> Values:
    guessed, true = _pair(predictions, truth)
    return np.asarray(guessed == true, np.float64)[:, None]


def _mean(table: Values, counts: Values) -> Values:
    found: Values = counts @ table[:, 0] / counts.sum(1)
    return found


def _f1_table(predictions: ArrayLike, truth: ArrayLike) -> Values:
    """Return for each row whether both sides have label 1, and how many sides do."""
    guessed, true = (side == 1 for side in _pair(predictions, truth))
    return np.stack((guessed & true, guessed.astype(np.int64) + true), axis=1).astype(np.float64)


def _f1(table: Values, counts: Values) -> Values:
    """Return the harmonic mean of precision and recall; 0 where label 1 is neither true nor predicted."""
    hits, wanted = (counts @ table).T
    found: Values = 2 * hits / np.where(wanted > 0, wanted, 1.0)
    return found


def matthews(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Return Matthews' correlation of predicted and true labels, of any number; 0 where either is constant."""
    guessed, true = _pair(predictions, truth)
    names = np.unique(np.concatenate((guessed, true)))
    return _whole_correlation(
        (guessed[:, None] == names).astype(np.float64), (true[:, None] == names).astype(np.float64)
    )


def pearson(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Return the linear correlation of scores; 0 where either side is constant."""
    guessed, true = _pair(predictions, truth)
    return _whole_correlation(guessed[:, None], true[:, None])


def spearman(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Return the rank correlation of scores, with mean ranks for ties; 0 where either side is constant."""
    guessed, true = _pair(predictions, truth)
    return _whole_correlation(_whole_ranks(guessed)[:, None], _whole_ranks(true)[:, None])


def perplexity(losses: ArrayLike, weights: ArrayLike) -> float:
    """Return the exponential of the weighted mean loss in nats; the weights are numbers of tokens."""
    values, counts = _pair(losses, weights)
    return float(np.exp((values * counts).sum() / counts.sum()))


def _whole_correlation(left: Values, right: Values) -> float:
    """Correlate two matrices (rows, columns), adding up the covariances of their columns; 0 if either is constant."""
    if (left == left[0]).all() or (right == right[0]).all():
        return 0.0
    left, right = left - left.mean(0), right - right.mean(0)
    spread = float(np.sqrt((left * left).sum() * (right * right).sum()))
    return float((left * right).sum()) / spread


def _whole_ranks(values: Values) -> Values:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def _matthews(table: Values, counts: Values) -> Values:
    """Return the correlation of labels: covariances of the indicators of all classes, added up."""
    names = np.unique(table)
    guessed, true = ((table[:, side, None] == names).astype(np.float64) for side in (0, 1))
    rows = counts.sum(1)
    hits = counts @ (table[:, 0] == table[:, 1]).astype(np.float64)
    by_guess, by_truth = counts @ guessed, counts @ true
    both = rows * hits - (by_guess * by_truth).sum(1)
    spreads = (rows**2 - (by_guess**2).sum(1)) * (rows**2 - (by_truth**2).sum(1))
    found: Values = both / np.sqrt(np.where(spreads > 0, spreads, np.inf))
    return found


def _pearson(table: Values, counts: Values) -> Values:
    spread = table.std(0)
    one, other = ((table - table.mean(0)) / np.where(spread > 0, spread, 1.0)).T
    sums = counts @ np.stack((one, other, one * one, other * other, one * other), axis=1)
    mean, other_mean, square, other_square, product = (sums / counts.sum(1, keepdims=True)).T
    return _correlation(product - mean * other_mean, square - mean**2, other_square - other_mean**2)


def _spearman(table: Values, counts: Values) -> Values:
    rows = counts.sum(1)
    ranks, squares = zip(*(_ranks(side, counts) for side in table.T), strict=True)
    product = np.einsum("dr,dr,dr->d", counts, *ranks, optimize=False)
    mean = (rows + 1) / 2  # of the ranks of any draw
    return _correlation(*((one / rows - mean**2) / rows**2 for one in (product, *squares)))


def _ranks(values: Values, counts: Values) -> tuple[Values, Values]:
    """Return each row's rank within each draw, and the sum of all squares; equal values share their mean rank."""
    _, group = np.unique(values, return_inverse=True)
    order = np.argsort(group, kind="stable")
    firsts = np.searchsorted(group[order], np.arange(group.max() + 1))
    sizes = counts[:, order] if len(firsts) == len(group) else np.add.reduceat(counts[:, order], firsts, axis=1)
    middles = np.cumsum(sizes, axis=1)
    middles -= (sizes - 1) / 2
    return middles[:, group], np.einsum("dg,dg,dg->d", sizes, middles, middles, optimize=False)


def _correlation(covariance: Values, variance: Values, other: Values) -> Values:
    """Divide a covariance by two spreads; 0 where either side is constant."""
    varies = (variance > _CONSTANT) & (other > _CONSTANT)
    return np.where(varies, covariance / np.sqrt(np.where(varies, variance * other, 1.0)), 0.0)


def _perplexity(table: Values, counts: Values) -> Values:
    losses, tokens = (counts @ np.stack((table[:, 0] * table[:, 1], table[:, 1]), axis=1)).T
    found: Values = np.exp(losses / np.maximum(tokens, 1.0))
    return found


# several labels for each row


def _label_tables(predictions: ArrayLike, truth: ArrayLike) -> tuple[Values, Values]:
    """Return for each row and label whether both sides have it, and how many sides do."""
    guessed, true = np.asarray(predictions, np.float64), np.asarray(truth, np.float64)
    if guessed.shape != true.shape or guessed.ndim != 2 or not guessed.size:
        raise IllegalInput(f"a metric of several labels needs two equal tables, not {guessed.shape} and {true.shape}")
    return guessed * true, guessed + true


def _micro_f1_table(predictions: ArrayLike, truth: ArrayLike) -> Values:
    return np.stack([side.sum(1) for side in _label_tables(predictions, truth)], axis=1)


def _macro_f1(table: Values, counts: Values) -> Values:
    """Return the mean F1 of the labels; that of a label which is never true and never predicted is 0."""
    hits, wanted = np.hsplit(counts @ table, 2)
    found: Values = (2 * hits / np.maximum(wanted, 1.0)).mean(1)
    return found


def _subset_hits(predictions: ArrayLike, truth: ArrayLike) -> Values:
    """Return 1 for each row whose labels are all right, and 0 for the others."""
    both, sides = _label_tables(predictions, truth)
    return np.asarray((2 * both == sides).all(1, keepdims=True), np.float64)


def best_constant(truth: ArrayLike) -> tuple[int, ...]:
    """Return the constant answer with the best micro-F1 on some rows: the multi-label majority class.

    It consists of the commonest labels, as many as give the best F1.
    """
    true = np.asarray(truth, bool)
    counts = true.sum(0)
    order = np.argsort(-counts, kind="stable")
    hits, sizes = np.cumsum(counts[order]), np.arange(1, len(order) + 1)
    most = int((2 * hits / np.maximum(sizes * len(true) + counts.sum(), 1)).argmax()) + 1
    chosen = set(order[:most].tolist())
    return tuple(int(place in chosen) for place in range(len(order)))


# spans of a text


def _span_table(compare: Callable[[list[str], list[str]], float]) -> Callable[[Any, Any], Values]:
    """Compare the words of each prediction with those of the most similar of the row's answers.

    Case, punctuation and articles are ignored. If a row has no answers, or only articles and punctuation, the empty
    prediction is right.
    """

    def table(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> Values:
        if len(predictions) != len(answers) or not len(predictions):
            raise IllegalInput(f"a metric needs equally many rows of each; got {len(predictions)} and {len(answers)}")
        words = map(_normalised_words, predictions)
        golden = ([found for found in map(_normalised_words, row) if found] or [[]] for row in answers)
        rows = zip(words, golden, strict=True)
        return np.array([[max(compare(said, found) for found in row)] for said, row in rows], np.float64)

    return table


def _normalised_words(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def _overlap(words: list[str], golden: list[str]) -> float:
    """Return the F1 of the words that two texts share."""
    if not words or not golden:
        return float(words == golden)
    return 2 * (Counter(words) & Counter(golden)).total() / (len(words) + len(golden))


_overlaps = _span_table(_overlap)


# generated text


def check_bleu() -> None:
    """Raise `MissingExtra` if sacrebleu is not installed."""
    need("sacrebleu", _EXTRA)


def _check_texts(translations: Sequence[str], references: Sequence[str]) -> None:
    if len(translations) != len(references) or not references:
        raise IllegalInput(
            f"as many translations as references are compared, not {len(translations)} and {len(references)}"
        )


def bleu(translations: Sequence[str], references: Sequence[str]) -> float:
    """Return the BLEU of a corpus, from 0 to 100: sacrebleu's own, cased, with tokens `13a` and one reference each."""
    _check_texts(translations, references)
    return float(need("sacrebleu", _EXTRA).corpus_bleu(list(translations), [list(references)]).score)


def _same_text(translations: Sequence[str], references: Sequence[str]) -> Values:
    """Return 1 for each translation that equals its reference exactly, and 0 for the others."""
    _check_texts(translations, references)
    return np.array([[one == other] for one, other in zip(translations, references, strict=True)], np.float64)


def _bleu_table(translations: Sequence[str], references: Sequence[str]) -> Values:
    bleu = need("sacrebleu", _EXTRA).BLEU(effective_order=True)
    found = [bleu.sentence_score(one, [other]) for one, other in zip(translations, references, strict=True)]
    return np.array([[*one.counts, *one.totals, one.sys_len, one.ref_len] for one in found], np.float64)


def _bleu(table: Values, counts: Values) -> Values:
    bleu = need("sacrebleu", _EXTRA).BLEU
    sums = np.rint(counts @ table).astype(int).tolist()
    # smoothed as sacrebleu's corpus_bleu does it
    found = (bleu.compute_bleu(one[:4], one[4:8], one[8], one[9], smooth_method="exp") for one in sums)
    return np.array([one.score for one in found])


ACCURACY = Metric("accuracy", _hits, _mean)
F1 = Metric("f1", _f1_table, _f1)
MATTHEWS = Metric("matthews", _pairs, _matthews, matthews, range=(-1.0, 1.0))
PEARSON = Metric("pearson", _pairs, _pearson, pearson, range=(-1.0, 1.0))
SPEARMAN = Metric("spearman", _pairs, _spearman, spearman, range=(-1.0, 1.0))
PERPLEXITY = Metric("perplexity", _pairs, _perplexity, perplexity, "min", (1.0, math.inf))
MICRO_F1 = Metric("micro-f1", _micro_f1_table, _f1)
MACRO_F1 = Metric("macro-f1", lambda *sides: np.hstack(_label_tables(*sides)), _macro_f1)
SUBSET_ACCURACY = Metric("subset-accuracy", _subset_hits, _mean)
EXACT = Metric("exact", _span_table(lambda words, golden: float(words == golden)), _mean)
SPAN_F1 = Metric("span-f1", _overlaps, _mean, lambda *sides: sum(_overlaps(*sides)[:, 0].tolist()) / len(sides[0]))
ENTITY_F1 = Metric("entity-f1", entity_table, _f1, named=True)
TAG_ACCURACY = Metric("tag-accuracy", tag_table, share, named=True)
RELATION_F1 = Metric("relation-f1", relation_table, _macro_f1, named=True)
BLEU = Metric("bleu", _bleu_table, _bleu, bleu, range=(0.0, 100.0), written=True)
SAME_TEXT = Metric("same-text", _same_text, _mean, written=True)

_HERE = "formwright.tasks.metrics"
_NAMES = (
    "accuracy",
    "f1",
    "matthews",
    "pearson",
    "spearman",
    "perplexity",
    "micro-f1",
    "macro-f1",
    "subset-accuracy",
    "exact",
    "span-f1",
    "entity-f1",
    "tag-accuracy",
    "relation-f1",
    "bleu",
    "same-text",
)
METRICS: Registry[Metric] = Registry(
    "metric",
    {name: f"{_HERE}:{name.upper().replace('-', '_')}" for name in _NAMES},
    "formwright.metrics",
    Metric,
)
