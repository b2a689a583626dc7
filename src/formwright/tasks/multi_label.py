"""Metrics of tasks whose rows have several labels, or none: of predictions and truth as (rows, labels) of 0 and 1."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formwright.core.errors import IllegalInput

Flags = NDArray[np.bool_]


def micro_f1(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Give the F1 of all labels of all rows taken together; 0 where none is true and none predicted."""
    guessed, true = _pair(predictions, truth)
    return float(_f1((guessed & true).sum(), guessed.sum() + true.sum()))


def macro_f1(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Give the mean of the F1 of each label; that of a label which is never true and never predicted is 0."""
    guessed, true = _pair(predictions, truth)
    return float(_f1((guessed & true).sum(0), guessed.sum(0) + true.sum(0)).mean())


def subset_accuracy(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Give the share of rows whose labels are all right."""
    return float(subset_hits(predictions, truth).mean())


def subset_hits(predictions: ArrayLike, truth: ArrayLike) -> NDArray[np.float64]:
    """Give 1 for each row whose labels are all right, and 0 for the others."""
    guessed, true = _pair(predictions, truth)
    hits: NDArray[np.float64] = (guessed == true).all(1).astype(np.float64)
    return hits


def best_constant(truth: ArrayLike) -> tuple[int, ...]:
    """Give the answer that has the best micro-F1 on some rows among those that are the same for every row.

    It has the commonest labels; how many, the F1 decides. It is to several labels what the commonest class is to one.
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


def _pair(predictions: ArrayLike, truth: ArrayLike) -> tuple[Flags, Flags]:
    guessed, true = np.asarray(predictions, bool), np.asarray(truth, bool)
    if guessed.shape != true.shape or guessed.ndim != 2 or not guessed.size:
        raise IllegalInput(f"a metric of several labels needs two equal tables, not {guessed.shape} and {true.shape}")
    return guessed, true
