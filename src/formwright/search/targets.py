"""What surrogates learn: one number for each finished trial, of which larger is better."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from formwright.core.records import Objective, Trial
from formwright.search.fronts import best_first
from formwright.search.scores import score

Floats = NDArray[np.float64]


def targets(trials: Sequence[Trial], objectives: Sequence[Objective]) -> Floats:
    """Return how good each trial is, with mean 0 and variance 1.

    One goal without a broken limit is taken as it is. Several goals, or broken limits, have no common unit: then only
    the order from best to worst counts.
    """
    scores = score(trials, objectives)
    if scores.values.shape[1] == 1 and not scores.violations.any():
        return _standard(-scores.values[:, 0])
    place = np.empty(len(trials))
    place[best_first(scores)] = np.arange(len(trials))
    return _standard(-place)


def _standard(values: Floats) -> Floats:
    centred: Floats = values - values.mean() if len(values) else values
    spread = centred.std() if len(values) else 0.0
    return centred / spread if spread > 0 else np.zeros_like(centred)
