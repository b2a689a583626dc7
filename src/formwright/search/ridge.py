"""Ridge regression: a line through few points in many dimensions, with its stiffness chosen by leaving points out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PENALTIES = tuple(10.0**power for power in range(-3, 4))


@dataclass(frozen=True, eq=False)
class Ridge:
    """A linear map from points to several values at once."""

    centre: Floats
    mean: Floats
    weights: Floats  # (dimensions, values)

    def __call__(self, points: Floats) -> Floats:
        """Predict (points, values)."""
        predicted: Floats = (points - self.centre) @ self.weights + self.mean
        return predicted


def fit(points: Floats, values: Floats) -> Ridge:
    """Fit (points, dimensions) to (points, values), each value with the penalty that predicts left-out points best."""
    centre, mean = points.mean(axis=0), values.mean(axis=0)
    left, singular, right = np.linalg.svd(points - centre, full_matrices=False)
    inside = left.T @ (values - mean)
    columns = [_weights(left, singular, inside[:, n], values[:, n] - mean[n]) for n in range(values.shape[1])]
    return Ridge(centre, mean, right.T @ np.column_stack(columns))


def _weights(left: Floats, singular: Floats, inside: Floats, wanted: Floats) -> Floats:
    """Give the weights, in singular directions, of the penalty with the smallest error on left-out points."""
    best, found = np.inf, np.zeros_like(inside)
    for penalty in PENALTIES:
        shrunk = singular**2 / (singular**2 + penalty)
        # the error at a point that was left out follows from the fit to all of them; the mean takes its share too
        leverage = (left**2) @ shrunk + 1 / len(wanted)
        errors = (wanted - left @ (shrunk * inside)) / np.maximum(1 - leverage, 1e-9)
        if (error := float((errors**2).sum())) < best:
            best, found = error, inside * singular / (singular**2 + penalty)
    return found
