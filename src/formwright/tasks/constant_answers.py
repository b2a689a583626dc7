"""The constant answers that suit some labels best: what a model must beat."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formwright.tasks.metrics import best_constant


def commonest_class(labels: NDArray[Any], names: Sequence[str]) -> tuple[str, int]:
    """Answer with the commonest class."""
    label = int(np.bincount(labels.astype(np.int64)).argmax())
    return f"always answering {names[label]!r}", label


def mean_score(labels: NDArray[Any], _: Sequence[str]) -> tuple[str, float]:
    """Answer with the mean score."""
    return "always answering the mean", labels.mean()


def best_labels(labels: NDArray[Any], names: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Answer with the set of labels that has the best micro-F1."""
    best = best_constant(labels)
    chosen = " and ".join(repr(name) for name, has in zip(names, best, strict=True) if has)
    return f"always answering {chosen}", best
