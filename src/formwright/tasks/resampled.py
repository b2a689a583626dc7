"""Metrics on many resamples of the same rows at once, from a small table of each row's contribution."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formwright.core.extras import need

Values = NDArray[np.float64]
_CONSTANT = 1e-12  # variance, relative to that of all rows, below which a resample is constant


@dataclass(frozen=True)
class ByRow:
    """How a metric is computed on resampled rows.

    `table` turns predictions and truth into numbers (rows, columns). `scores` turns that table and how often each draw
    contains each row, (draws, rows), into one score for each draw. With every row once, that score is the metric.
    """

    table: Callable[[Any, Any], Values]
    scores: Callable[[Values, Values], Values]


def shares(row_scores: Callable[[Any, Any], Sequence[float] | Values]) -> ByRow:
    """Resample a metric that is the mean of one number for each row."""
    return ByRow(
        lambda predictions, truth: np.asarray(row_scores(predictions, truth), np.float64)[:, None],
        lambda table, counts: counts @ table[:, 0] / counts.sum(1),
    )


def any_numbers(compute: Callable[[Any, Any], float]) -> ByRow:
    """Resample any metric of numbers, draw by draw; slower than a formula of its own."""

    def scores(table: Values, counts: Values) -> Values:
        drawn = (np.repeat(table, count.astype(np.int64), axis=0) for count in counts)
        return np.array([compute(*_halves(rows)) for rows in drawn])

    return ByRow(_pairs, scores)


def _pairs(predictions: Any, truth: Any) -> Values:
    """Put predictions and truth side by side; each has one column, or as many as a row has labels."""
    sides = [np.asarray(side, np.float64).reshape(len(side), -1) for side in (predictions, truth)]
    return np.concatenate(sides, axis=1)


def _halves(table: Values) -> tuple[Values, Values]:
    width = table.shape[1] // 2
    return (table[:, 0], table[:, 1]) if width == 1 else (table[:, :width], table[:, width:])


def _f1_table(predictions: Any, truth: Any) -> Values:
    guessed, true = np.asarray(predictions) == 1, np.asarray(truth) == 1
    return np.stack((guessed & true, guessed.astype(np.int64) + true), axis=1).astype(np.float64)


def _f1(table: Values, counts: Values) -> Values:
    hits, wanted = (counts @ table).T
    found: Values = 2 * hits / np.where(wanted > 0, wanted, 1.0)
    return found


def _label_tables(predictions: Any, truth: Any) -> tuple[Values, Values]:
    """Return for each row and label whether both sides have it, and how many sides do."""
    guessed, true = np.asarray(predictions, np.float64), np.asarray(truth, np.float64)
    return guessed * true, guessed + true


def _macro_f1(table: Values, counts: Values) -> Values:
    hits, wanted = np.hsplit(counts @ table, 2)
    found: Values = (2 * hits / np.maximum(wanted, 1.0)).mean(1)
    return found


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


def _bleu_table(translations: Sequence[str], references: Sequence[str]) -> Values:
    bleu = need("sacrebleu", "translation").BLEU(effective_order=True)
    found = [bleu.sentence_score(one, [other]) for one, other in zip(translations, references, strict=True)]
    return np.array([[*one.counts, *one.totals, one.sys_len, one.ref_len] for one in found], np.float64)


def _bleu(table: Values, counts: Values) -> Values:
    bleu = need("sacrebleu", "translation").BLEU
    sums = np.rint(counts @ table).astype(int).tolist()
    # smoothed as sacrebleu's corpus_bleu does it
    found = (bleu.compute_bleu(one[:4], one[4:8], one[8], one[9], smooth_method="exp") for one in sums)
    return np.array([one.score for one in found])


F1 = ByRow(_f1_table, _f1)
MICRO_F1 = ByRow(lambda *sides: np.stack([side.sum(1) for side in _label_tables(*sides)], axis=1), _f1)
MACRO_F1 = ByRow(lambda *sides: np.hstack(_label_tables(*sides)), _macro_f1)
MATTHEWS = ByRow(_pairs, _matthews)
PEARSON = ByRow(_pairs, _pearson)
SPEARMAN = ByRow(_pairs, _spearman)
PERPLEXITY = ByRow(_pairs, _perplexity)
BLEU = ByRow(_bleu_table, _bleu)
