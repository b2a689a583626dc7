"""Predictors that are one regression each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from formwright.core.options import option
from formwright.search.predictors import Fitted, Floats, Predictor

if TYPE_CHECKING:
    from sklearn.base import RegressorMixin

PENALTIES = tuple(10.0**power for power in range(-3, 4))


@dataclass(frozen=True)
class Ridge(Predictor):
    """Fit a linear function with the penalty of the smallest leave-one-out error."""

    NAME: ClassVar[str] = "ridge"

    def fit(self, points: Floats, values: Floats) -> Fitted:
        centre, mean = points.mean(axis=0), values.mean(axis=0)
        left, singular, right = np.linalg.svd(points - centre, full_matrices=False)  # one for all values
        inside = left.T @ (values - mean)
        columns = [_weights(left, singular, inside[:, n], values[:, n] - mean[n]) for n in range(values.shape[1])]
        weights = right.T @ np.column_stack(columns)
        return lambda queries: ((queries - centre) @ weights + mean, None)


def _weights(left: Floats, singular: Floats, inside: Floats, wanted: Floats) -> Floats:
    """Return the weights, in singular directions, of the penalty with the smallest error on left-out points."""
    best, found = np.inf, np.zeros_like(inside)
    for penalty in PENALTIES:
        shrunk = singular**2 / (singular**2 + penalty)
        # the error at a point that was left out follows from the fit to all of them; the mean takes its share too
        leverage = (left**2) @ shrunk + 1 / len(wanted)
        errors = (wanted - left @ (shrunk * inside)) / np.maximum(1 - leverage, 1e-9)
        if (error := float((errors**2).sum())) < best:
            best, found = error, inside * singular / (singular**2 + penalty)
    return found


@dataclass(frozen=True)
class SupportVectors(Predictor):
    """Fit a support vector regression with an RBF kernel to standardised points and values."""

    NAME: ClassVar[str] = "svr"
    cost: float = option(10.0, "cost of an error beyond the margin", least=1e-6)
    margin: float = option(0.05, "error that costs nothing, in standard deviations of the values", least=0)

    def fit_one(self, points: Floats, values: Floats) -> Fitted:
        from sklearn.svm import SVR  # noqa: PLC0415  slow to import, and few searches need it

        return _scaled_fit(SVR(C=self.cost, epsilon=self.margin), points, values)


@dataclass(frozen=True)
class BoostedTrees(Predictor):
    """Fit boosted regression trees."""

    NAME: ClassVar[str] = "boosted-trees"
    trees: int = option(100, "number of trees", least=1)
    depth: int = option(3, "depth of each tree", least=1)
    rate: float = option(0.1, "share of its prediction that each tree adds", least=1e-6, most=1)

    def fit_one(self, points: Floats, values: Floats) -> Fitted:
        from sklearn.ensemble import GradientBoostingRegressor  # noqa: PLC0415

        trees = GradientBoostingRegressor(
            n_estimators=self.trees, max_depth=self.depth, learning_rate=self.rate, random_state=0
        )
        return _scaled_fit(trees, points, values)


@dataclass(frozen=True)
class GaussianProcesses(Predictor):
    """Fit a Gaussian process, the only predictor here that also gives a standard deviation."""

    NAME: ClassVar[str] = "gaussian-process"

    def fit_one(self, points: Floats, values: Floats) -> Fitted:
        from formwright.search.surrogate_searchers import fit  # noqa: PLC0415  it needs scipy

        mean, scale = values.mean(), values.std() or 1.0
        process = fit(points, (values - mean) / scale)

        def predict(queries: Floats) -> tuple[Floats, Floats]:
            found, deviation = process.predict(queries)
            return found * scale + mean, deviation * scale

        return predict


def _scaled_fit(regressor: RegressorMixin | Any, points: Floats, values: Floats) -> Fitted:
    """Fit a regressor of scikit-learn to standardised points and values; a constant column stays as it is."""
    centre, width = points.mean(axis=0), points.std(axis=0)
    width[width == 0.0] = 1.0
    mean, scale = values.mean(), values.std() or 1.0
    regressor.fit((points - centre) / width, (values - mean) / scale)
    return lambda queries: (regressor.predict((queries - centre) / width) * scale + mean, None)
