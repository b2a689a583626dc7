import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from tests.search.contract import Contract
from tests.search.smooth import Smooth

from formwright.core.records import History, Request, Trial
from formwright.core.rng import derive
from formwright.search.baselines import RandomSearch
from formwright.search.listing import listing
from formwright.search.surrogate_searchers import Forest, GaussianProcess, GpBo, Scales, fit, grown
from formwright.testing.searcher_contract import ACCURACY
from formwright.testing.toy_problem import layered, run, small


def problem(number: int = 40, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(number, 3))
    values = np.sin(points[:, 0]) + 0.5 * points[:, 1] + noise * rng.normal(size=number)
    return points, (values - values.mean()) / values.std()


def oracle(scales: Scales, **options: object) -> GaussianProcessRegressor:
    kernel = ConstantKernel(scales.variance) * Matern(scales.length, nu=2.5)
    return GaussianProcessRegressor(kernel + WhiteKernel(scales.noise * scales.variance), alpha=0.0, **options)


def test_predictions_are_those_of_scikit_learn() -> None:
    points, values = problem()
    queries = np.random.default_rng(2).normal(size=(20, 3))
    scales = Scales(length=1.7, noise=0.05, variance=2.5)
    mean, deviation = GaussianProcess(points, values, scales).predict(queries)
    theirs = oracle(scales, optimizer=None).fit(points, values)
    # theirs counts the noise of the next observation
    their_mean, their_deviation = theirs.predict(queries, return_std=True)
    np.testing.assert_allclose(mean, their_mean, atol=1e-8)
    np.testing.assert_allclose(deviation**2 + scales.noise * scales.variance, their_deviation**2, atol=1e-8)


@pytest.mark.parametrize("noise", [0.05, 0.1, 1.0])
def test_the_scales_are_about_as_likely_as_those_of_scikit_learn(noise: float) -> None:
    points, values = problem(noise=noise)
    ours = fit(points, values).scales
    start = Scales(1.0, 0.1, 1.0)
    bounds = (1e-4, 1e4)
    kernel = ConstantKernel(1.0, bounds) * Matern(1.0, bounds, nu=2.5) + WhiteKernel(0.1, (1e-6, 1e2))
    best = GaussianProcessRegressor(kernel, alpha=0.0).fit(points, values).log_marginal_likelihood_value_
    mine = oracle(ours, optimizer=None).fit(points, values).log_marginal_likelihood_value_
    worse = oracle(start, optimizer=None).fit(points, values).log_marginal_likelihood_value_
    assert mine > best - 0.5
    assert mine > worse


def test_it_is_sure_where_it_looked_and_only_there() -> None:
    points, values = problem(noise=0.0)
    process = fit(points, values)
    mean, deviation = process.predict(np.vstack([points, points.max(axis=0) * 10]))
    np.testing.assert_allclose(mean[:-1], values, atol=0.1)
    assert deviation[-1] > 5 * deviation[:-1].max()


def test_what_it_believes_changes_no_mean_but_makes_it_surer() -> None:
    points, values = problem()
    process = fit(points, values)
    there = points[:1] + 1.5
    mean, deviation = process.predict(there)
    believing_mean, believing_deviation = process.believe(there).predict(there)
    assert believing_mean == pytest.approx(mean, abs=1e-6)
    assert believing_deviation[0] < deviation[0]
    assert process.believe(there[:0]) is process


def test_equal_values_and_equal_points_are_no_trouble() -> None:
    points = np.ones((3, 2))
    mean, deviation = fit(points, np.zeros(3)).predict(points)
    np.testing.assert_allclose(mean, 0.0)
    assert np.isfinite(deviation).all()


GOAL = (ACCURACY,)


@pytest.mark.slow
class TestGpBo(Contract):
    kind, trials, options = GpBo, 14, {"coordinates": "one-hot", "initial": 6}


@pytest.mark.slow
@pytest.mark.long
class TestUpperConfidenceBound(Contract):
    kind, trials, options = GpBo, 14, {"coordinates": "one-hot", "acquisition": "ucb", "initial": 6}


def test_it_finds_the_best_of_a_small_space() -> None:
    problem = Smooth(small())
    assert problem.better(GpBo(small(), GOAL, coordinates="one-hot", initial=8), 30, seed=0) == 0.0


@pytest.mark.slow
def test_a_space_too_large_to_list_is_searched_beyond_the_pool() -> None:
    space = layered("unlisted", (4,), (16, 32, 64), (3, 5, 9))
    listed, problem = listing(space, "one-hot"), Smooth(space)
    assert not listed.whole
    history = run(GpBo(space, GOAL, coordinates="one-hot", initial=10), problem, 30)
    assert any(trial.request.card.digest not in listed.row for trial in history.trials[10:])
    best = max(problem.score(trial.request.design) for trial in history.trials)
    assert best > max(map(problem.score, listed.designs[:1_000]))


def test_a_listed_card_without_a_design_is_learnt_from() -> None:
    space = small()
    problem = Smooth(space)
    searcher = GpBo(space, GOAL, coordinates="one-hot", initial=2)
    history = run(searcher, problem, 10)
    bare = [Trial(t.number, Request(t.request.card), t.state, t.observation) for t in history.trials]
    assert searcher.ask(History(tuple(bare)), derive(1)) == searcher.ask(history, derive(1))


@pytest.mark.slow
class TestForest(Contract):
    kind, trials, options = Forest, 14, {"trees": 6, "initial": 6}


@pytest.mark.long
def test_it_beats_random_search_in_a_small_space() -> None:
    problem = Smooth(small())
    found = [problem.better(Forest(small(), GOAL, initial=8), 40, seed) for seed in range(2)]
    drawn = [problem.better(RandomSearch(small(), GOAL), 40, seed) for seed in range(8)]
    assert np.mean(found) < np.mean(drawn)


def test_a_forest_learns_what_choices_do_together() -> None:
    points = derive(0).integers(2, size=(200, 6)).astype(float)
    scores = np.where(points[:, 0] == points[:, 1], 1.0, -1.0)
    queries = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1], [1, 0, 0, 0, 0, 0]], np.float32)
    found = grown(points, scores, queries, 20, derive(1))
    assert found.shape == (20, 3)
    assert found.mean(axis=0) == pytest.approx([1, 1, -1], abs=0.5)
    assert np.array_equal(found, grown(points, scores, queries, 20, derive(1)))
    assert not np.array_equal(found, grown(points, scores, queries, 20, derive(2)))
