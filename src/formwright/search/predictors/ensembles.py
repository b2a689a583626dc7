"""Predictors made of several: stacked regression, and the choice of one by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from formwright.core.errors import IllegalInput
from formwright.core.options import option
from formwright.search.predictors import Fitted, Floats, Predictor
from formwright.search.predictors.regressors import Ridge, SupportVectors

FOLDS = 5


def left_out(predictor: Predictor, points: Floats, values: Floats, folds: int = FOLDS) -> Floats:
    """Predict each value by a fit to all folds but its own; every `folds`-th point is in the same fold."""
    fold, found = np.arange(len(points)) % min(folds, len(points)), np.empty_like(values)
    for one in np.unique(fold):
        own = fold == one
        found[own] = predictor.fit(points[~own], values[~own, None])(points[own])[0][:, 0]
    return found


def mape(values: Floats, predicted: Floats) -> float:
    """Return the mean absolute error as a share of each value."""
    return float(np.mean(np.abs(values - predicted) / np.maximum(np.abs(values), np.finfo(np.float64).eps)))


@dataclass(frozen=True)
class Stacked(Predictor):
    """Fit a linear function of what several predictors say of points that were left out of their fit."""

    NAME: ClassVar[str] = "stacked"
    members: tuple[Predictor, ...] = option((Ridge(), SupportVectors()), "the predictors that are combined")

    def __post_init__(self) -> None:
        if not self.members:
            raise IllegalInput("a stacked predictor needs at least one member, such as ridge")

    def fit_one(self, points: Floats, values: Floats) -> Fitted:
        said = np.column_stack([left_out(member, points, values) for member in self.members])
        combined = Ridge().fit(said, values[:, None])
        fitted = [member.fit(points, values[:, None]) for member in self.members]
        return lambda queries: (combined(np.column_stack([one(queries)[0] for one in fitted]))[0][:, 0], None)


@dataclass(frozen=True)
class CrossValidated(Predictor):
    """Fit the candidate with the smallest mean absolute percentage error (MAPE) in cross-validation."""

    NAME: ClassVar[str] = "auto"
    candidates: tuple[Predictor, ...] = option(
        (Ridge(), SupportVectors(), Stacked()), "the predictors to choose from; the first of equals is taken"
    )
    folds: int = option(FOLDS, "folds of the cross-validation", least=2)

    def __post_init__(self) -> None:
        if not self.candidates:
            raise IllegalInput("a choice among predictors needs at least one candidate, such as ridge")

    def chosen(self, points: Floats, values: Floats) -> Predictor:
        """Return the candidate with the smallest error."""
        errors = [mape(values, left_out(one, points, values, self.folds)) for one in self.candidates]
        return self.candidates[int(np.argmin(errors))]

    def fit_one(self, points: Floats, values: Floats) -> Fitted:
        fitted = self.chosen(points, values).fit(points, values[:, None])

        def predict(queries: Floats) -> tuple[Floats, Floats | None]:
            mean, spread = fitted(queries)
            return mean[:, 0], None if spread is None else spread[:, 0]

        return predict
