"""Predictors: fitted to the scores of evaluated designs, they say what other designs would score.

A predictor is a part with options. Other packages add theirs by an entry point in the group `formwright.predictors`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formwright.core.options import Part
from formwright.core.registry import Registry

_HERE = "formwright.search.predictors"

Floats = NDArray[np.float64]
# from points (points, dimensions) to means (points, values), and standard deviations where the predictor knows them
Fitted = Callable[[Floats], tuple[Floats, Floats | None]]

PREDICTORS: Registry[Any] = Registry(
    "predictor",
    {
        "ridge": f"{_HERE}.regressors:Ridge",
        "svr": f"{_HERE}.regressors:SupportVectors",
        "boosted-trees": f"{_HERE}.regressors:BoostedTrees",
        "gaussian-process": f"{_HERE}.regressors:GaussianProcesses",
        "stacked": f"{_HERE}.ensembles:Stacked",
        "auto": f"{_HERE}.ensembles:CrossValidated",
    },
    "formwright.predictors",
)


class Predictor(Part):
    """Base class of predictors of scores from design points; those that learn one score at a time have `fit_one`."""

    @classmethod
    def registry(cls) -> Registry[Any]:
        return PREDICTORS

    def fit(self, points: Floats, values: Floats) -> Fitted:
        """Learn from points (points, dimensions) and values (points, values); equal data give equal predictions."""
        models = [self.fit_one(points, column) for column in values.T]

        def predict(queries: Floats) -> tuple[Floats, Floats | None]:
            found = [model(queries) for model in models]
            spreads = [spread for _, spread in found if spread is not None]
            whole = len(spreads) == len(found)
            return np.column_stack([mean for mean, _ in found]), np.column_stack(spreads) if whole else None

        return predict

    def fit_one(self, points: Floats, values: Floats) -> Fitted:
        """Learn from points and one value of each, (points,); predictions have this shape too."""
        raise TypeError(f"{type(self).__name__} predicts nothing")


__all__ = ["PREDICTORS", "Fitted", "Floats", "Predictor"]
