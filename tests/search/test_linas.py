from collections.abc import Callable

import numpy as np
import pytest
from sklearn.linear_model import Ridge as Reference
from tests.search.contract import Contract
from tests.search.smooth import Smooth

from formwright.core.records import Objective, Observation, Request, Spent
from formwright.search.evolution import Nsga2
from formwright.search.linas import PENALTIES, Linas, _gains, fit
from formwright.search.scores import Scores, hypervolume
from formwright.space import Space
from formwright.testing.searcher_contract import ACCURACY
from formwright.testing.toy_problem import run, small

PARAMS = Objective.parse("params:min")


class TestLinas(Contract):
    kind, trials, options = Linas, 12, {"initial": 5, "population": 8, "generations": 3}


def test_gains_are_what_a_design_adds_to_the_volume_of_legal_ones() -> None:
    known = Scores(np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros(2))
    rows = np.array([[0.5, 0.5], [0.9, 0.9], [-1.0, -1.0], [2.0, 2.0]])
    middle, edge, both, outside = _gains(known, rows)
    assert both > middle > edge > 0 > outside
    before = hypervolume(known.values, [1.1, 1.1], ["min", "min"])
    after = hypervolume(np.vstack((known.values, rows[:1])), [1.1, 1.1], ["min", "min"])
    assert middle == pytest.approx(after - before, abs=1e-6)
    broken = Scores(np.array([[0.0, 1.0], [1.0, 0.0], [-9.0, -9.0]]), np.array([0.0, 0.0, 2.0]))
    assert _gains(broken, np.array([[0.2, 0.2]]))[0] > 0


class Both:
    """A smooth score that grows with what a design costs."""

    def __init__(self, space: Space) -> None:
        self.smooth = Smooth(space)

    def evaluate(self, request: Request, context: object) -> Observation:
        found = self.smooth.evaluate(request, context)  # type: ignore[arg-type]
        size = float(np.sum(self.smooth.space.encode(request.design)[::2]))
        return Observation({**found.metrics, "params": size}, Spent(0.0, 0))


@pytest.mark.slow
def test_it_needs_fewer_evaluations_than_nsga2() -> None:
    space = small()
    goals = (ACCURACY, PARAMS)

    def volume(searcher: Linas | Nsga2, trials: int, seed: int) -> float:
        history = run(searcher, Both(space), trials, seed)
        rows = [
            [trial.observation.metrics[goal.name] for goal in goals] for trial in history.finished if trial.observation
        ]
        return hypervolume(rows, [-5.0, 20.0], ["max", "min"])

    ours = [volume(Linas(space, goals, initial=8), 24, seed) for seed in range(3)]
    theirs = [volume(Nsga2(space, goals, population=8), 24, seed) for seed in range(3)]
    assert np.mean(ours) > np.mean(theirs)


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


def test_degenerate_points() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(6, 50)), rng.normal(size=(6, 1))
    assert np.isfinite(fit(x, y)(rng.normal(size=(10, 50)))).all()
    assert fit(np.ones((5, 3)), np.arange(5.0)[:, None])(np.ones((1, 3)))[0, 0] == pytest.approx(2)
