from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_percentage_error

from formwright.core.errors import IllegalInput
from formwright.search.predictors import Fitted, Floats, Predictor, ensembles
from formwright.search.predictors.ensembles import CrossValidated, Stacked, left_out, mape
from formwright.search.predictors.regressors import Ridge, SupportVectors


def made(points: int, linear: bool, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(seed).uniform(-1, 1, size=(points, 4))
    return x, 5 + (x @ np.array([1.0, 2.0, -1.0, 0.5]) if linear else 3 * x[:, 0] * x[:, 1])


def test_a_value_is_predicted_by_a_fit_that_did_not_see_it() -> None:
    x, y = made(23, linear=True)
    found = left_out(Ridge(), x, y, folds=5)
    own = np.arange(23) % 5 == 2
    expected = Ridge().fit(x[~own], y[~own, None])(x[own])[0][:, 0]
    assert np.array_equal(found[own], expected)
    y[4] = 1e3  # a row does not count for itself
    assert abs(left_out(Ridge(), x, y)[4]) < 500


def test_the_error_is_that_of_the_field() -> None:
    x, y = made(20, linear=True)
    assert mape(y, y + x[:, 0]) == pytest.approx(mean_absolute_percentage_error(y, y + x[:, 0]))
    assert np.isfinite(mape(np.zeros(3), np.ones(3)))


@pytest.mark.parametrize(("linear", "expected"), [(True, Ridge()), (False, SupportVectors())])
def test_the_better_of_two_predictors_is_chosen_for_each_value(linear: bool, expected: object) -> None:
    auto = CrossValidated((Ridge(), SupportVectors()))
    x, y = made(60, linear)
    assert auto.chosen(x, y) == expected
    both = np.column_stack([made(60, one)[1] for one in (True, False)])
    found = auto.fit(x, both)(x)[0]
    assert np.array_equal(found[:, 1], SupportVectors().fit(x, both[:, 1:])(x)[0][:, 0])


def test_predictors_are_compared_by_as_many_folds_as_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    folds: list[int] = []

    def noted(predictor: Ridge, x: np.ndarray, y: np.ndarray, number: int) -> np.ndarray:
        folds.append(number)
        return left_out(predictor, x, y, number)

    monkeypatch.setattr(ensembles, "left_out", noted)
    CrossValidated((Ridge(), Ridge()), folds=3).chosen(*made(20, linear=True))
    assert folds == [3, 3]


def test_a_stack_is_about_as_good_as_its_best_member() -> None:
    for linear in (True, False):
        (x, y), (queries, wanted) = made(80, linear), made(80, linear, seed=1)
        errors = [mape(wanted, one.fit(x, y[:, None])(queries)[0][:, 0]) for one in (*Stacked().members, Stacked())]
        assert errors[-1] < 1.3 * min(errors[:-1]) + 1e-3


@dataclass(frozen=True)
class Nearest(Predictor):
    """Remember every value: no error at known points, and a large one elsewhere."""

    NAME: ClassVar[str] = "nearest"

    def fit_one(self, points: Floats, values: Floats) -> Fitted:
        return lambda queries: (values[((queries[:, None] - points) ** 2).sum(2).argmin(1)], None)


def test_members_of_a_stack_are_weighed_by_what_they_say_of_points_that_they_did_not_see() -> None:
    (x, y), (queries, wanted) = made(60, linear=True), made(60, linear=True, seed=1)
    predictors = Ridge(), Nearest(), Stacked((Nearest(), Ridge()))
    ridge, nearest, stack = (mape(wanted, one.fit(x, y[:, None])(queries)[0][:, 0]) for one in predictors)
    assert nearest > 0.05
    assert stack < ridge + 0.01


def test_predictors_without_members_are_refused() -> None:
    with pytest.raises(IllegalInput):
        Stacked(())
    with pytest.raises(IllegalInput):
        CrossValidated(())
