import numpy as np
import pytest
from sklearn.linear_model import Ridge as Reference

from formwright.search.ridge import PENALTIES, fit


def problem(points: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(points, 8))
    y = x @ rng.normal(size=(8, 2)) + 3 + noise * rng.normal(size=(points, 2))
    return x, y


def left_out_error(x: np.ndarray, y: np.ndarray, penalty: float) -> float:
    errors = []
    for row in range(len(x)):
        rest = np.delete(np.arange(len(x)), row)
        errors.append(y[row] - Reference(alpha=penalty).fit(x[rest], y[rest]).predict(x[row : row + 1])[0])
    return float(np.square(errors).sum())


def test_a_linear_function_is_found() -> None:
    x, y = problem(40, 0.0)
    assert fit(x[:30], y[:30])(x[30:]) == pytest.approx(y[30:], abs=0.01)


@pytest.mark.parametrize("noise", [0.1, 3.0, 30.0])
def test_it_is_ridge_regression_with_the_penalty_of_the_smallest_left_out_error(noise: float) -> None:
    x, y = problem(20, noise)
    for column in range(2):
        wanted = y[:, column]
        best = min(PENALTIES, key=lambda penalty: left_out_error(x, wanted, penalty))
        reference = Reference(alpha=best).fit(x, wanted).predict(x)
        # the shortcut for left-out points takes the mean as known, so that near a tie another penalty may win
        near = [Reference(alpha=best * factor).fit(x, wanted).predict(x) for factor in (0.1, 10)]
        found = fit(x, y)(x)[:, column]
        assert any(np.allclose(found, one, atol=1e-6) for one in (reference, *near))


def test_more_dimensions_than_points_do_no_harm() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(6, 50)), rng.normal(size=(6, 1))
    assert np.isfinite(fit(x, y)(rng.normal(size=(10, 50)))).all()


def test_points_that_are_all_the_same_predict_the_mean() -> None:
    assert fit(np.ones((5, 3)), np.arange(5.0)[:, None])(np.ones((1, 3)))[0, 0] == pytest.approx(2)
