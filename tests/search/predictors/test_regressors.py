from collections.abc import Callable

import numpy as np
import pytest
from sklearn.linear_model import Ridge as Reference

from formwright.search.predictors import PREDICTORS
from formwright.search.predictors.regressors import PENALTIES, BoostedTrees, GaussianProcesses, Ridge, SupportVectors


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
    assert Ridge().fit(x[:30], y[:30])(x[30:])[0] == pytest.approx(y[30:], abs=0.01)


@pytest.mark.parametrize("noise", [0.1, 3.0, 30.0])
@pytest.mark.parametrize("number", [6, 20])
def test_it_is_ridge_regression_with_the_penalty_of_the_smallest_left_out_error(number: int, noise: float) -> None:
    for seed in range(5):
        x, y = problem(number, noise, seed)
        for column in range(2):
            wanted = y[:, column]
            best = min(PENALTIES, key=lambda penalty: left_out_error(x, wanted, penalty))
            found = Ridge().fit(x, y)(x)[0][:, column]
            assert found == pytest.approx(line(x, wanted, best)(x), abs=1e-6)
    assert found == pytest.approx(Reference(alpha=best).fit(x, wanted).predict(x), abs=1e-6)


def test_degenerate_points() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(6, 50)), rng.normal(size=(6, 1))
    assert np.isfinite(Ridge().fit(x, y)(rng.normal(size=(10, 50)))[0]).all()
    found, _ = Ridge().fit(np.ones((5, 3)), np.arange(5.0)[:, None])(np.ones((1, 3)))
    assert found[0, 0] == pytest.approx(2)


def bent(points: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Make two values that no linear function tells, one of them in large units."""
    x = np.random.default_rng(seed).uniform(-1, 1, size=(points, 4))
    return x, np.column_stack([x[:, 0] * x[:, 1] + x[:, 2] ** 2, 1e4 * np.abs(x[:, 3]) + 5e4])


@pytest.mark.parametrize("predictor", [SupportVectors(), BoostedTrees(), GaussianProcesses()])
def test_what_is_not_linear_is_predicted_better_than_by_a_line(predictor: object) -> None:
    (x, y), (queries, wanted) = bent(120), bent(60, seed=1)
    errors = np.square(predictor.fit(x, y)(queries)[0] - wanted).mean(axis=0)  # type: ignore[attr-defined]
    linear = np.square(Ridge().fit(x, y)(queries)[0] - wanted).mean(axis=0)
    assert (errors < 0.5 * linear).all()


def test_a_gaussian_process_is_less_sure_far_from_what_it_saw() -> None:
    x, y = bent(60)
    mean, spread = GaussianProcesses().fit(x, y)(np.vstack([x[:5], x[:5] + 10.0]))
    assert spread is not None
    assert mean.shape == spread.shape == (10, 2)
    assert (spread[5:] > spread[:5]).all()
    larger = GaussianProcesses().fit(x, 100 * y)(x[:5] + 10.0)[1]
    assert larger == pytest.approx(100 * spread[5:], rel=1e-3)  # in the unit of the values


@pytest.mark.parametrize("name", PREDICTORS.names())
def test_few_equal_or_constant_points_stop_no_predictor(name: str) -> None:
    x, y = bent(4)
    predictor = PREDICTORS.get(name)()
    for points, values in ((x[:3], y[:3]), (np.ones((4, 4)), y), (x, np.ones((4, 2)))):
        found = predictor.fit(points, values)(x)[0]
        assert found.shape == (4, 2)
        assert np.isfinite(found).all()


@pytest.mark.parametrize("name", PREDICTORS.names())
def test_equal_data_give_equal_predictions(name: str) -> None:
    x, y = bent(30)
    one, other = (PREDICTORS.get(name)().fit(x, y)(x)[0] for _ in range(2))
    assert np.array_equal(one, other)
