from collections.abc import Callable

import numpy as np
import pytest
from sklearn.linear_model import Ridge as Reference

from formwright.search.ridge import PENALTIES, fit


def problem(points: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(points, 8))
    y = x @ rng.normal(size=(8, 2)) + 3 + noise * rng.normal(size=(points, 2))
    return x, y


def line(x: np.ndarray, y: np.ndarray, penalty: float) -> Callable[[np.ndarray], np.ndarray]:
    """Fit one value by its normal equations."""
    inside = x - x.mean(0)
    weights = np.linalg.solve(inside.T @ inside + penalty * np.eye(x.shape[1]), inside.T @ (y - y.mean()))
    return lambda points: (points - x.mean(0)) @ weights + y.mean()


def left_out_error(x: np.ndarray, y: np.ndarray, penalty: float) -> float:
    """Really leave each point out of the fit, which takes its share of the mean away as well."""
    rests = [np.delete(np.arange(len(x)), row) for row in range(len(x))]
    errors = [y[row] - line(x[rest], y[rest], penalty)(x[row]) for row, rest in enumerate(rests)]
    return float(np.square(errors).sum())


def test_a_linear_function_is_found() -> None:
    x, y = problem(40, 0.0)
    assert fit(x[:30], y[:30])(x[30:]) == pytest.approx(y[30:], abs=0.01)


@pytest.mark.parametrize("noise", [0.1, 3.0, 30.0])
@pytest.mark.parametrize("number", [6, 20])
def test_it_is_ridge_regression_with_the_penalty_of_the_smallest_left_out_error(number: int, noise: float) -> None:
    for seed in range(5):
        x, y = problem(number, noise, seed)
        for column in range(2):
            wanted = y[:, column]
            best = min(PENALTIES, key=lambda penalty: left_out_error(x, wanted, penalty))
            found = fit(x, y)(x)[:, column]
            assert found == pytest.approx(line(x, wanted, best)(x), abs=1e-6)
    assert found == pytest.approx(Reference(alpha=best).fit(x, wanted).predict(x), abs=1e-6)


def test_more_dimensions_than_points_do_no_harm() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(6, 50)), rng.normal(size=(6, 1))
    assert np.isfinite(fit(x, y)(rng.normal(size=(10, 50)))).all()


def test_points_that_are_all_the_same_predict_the_mean() -> None:
    assert fit(np.ones((5, 3)), np.arange(5.0)[:, None])(np.ones((1, 3)))[0, 0] == pytest.approx(2)
