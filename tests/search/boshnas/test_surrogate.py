import numpy as np
import pytest
from scipy.stats import kendalltau
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from tests.search.boshnas.cases import Case, case, points

from formwright.core.rng import derive
from formwright.search.boshnas.networks import Floats, Jet
from formwright.search.boshnas.surrogate import ScorePrediction, fit, spread

SEEDS = (1, 2, 3)
NINETY = 1.645  # standard deviations to either side that hold 90 % of a normal distribution


def held_out(given: Case, seed: int) -> np.ndarray:
    return derive(seed, "held out").choice(given.unseen, size=1_000, replace=False)


def toy(number: int = 30) -> tuple[Floats, Floats, Floats]:
    x = derive(30).normal(size=(number + 50, 5)).astype(np.float32)
    y = np.tanh(x[:number, 0]) - x[:number, 1]
    return x[:number], (y - y.mean()) / y.std(), x[number:]


def test_the_same_generator_gives_the_same_surrogate() -> None:
    x, y, others = toy()
    first, second, third = (fit(x, y, others, derive(seed)).predict(others) for seed in (31, 31, 32))
    np.testing.assert_array_equal(first.mean, second.mean)
    np.testing.assert_array_equal(first.epistemic, second.epistemic)
    assert not np.array_equal(first.mean, third.mean)


@pytest.mark.parametrize("heteroscedastic", [True, False])
def test_jets_agree_with_predictions(heteroscedastic: bool) -> None:
    x, y, others = toy()
    surrogate = fit(x, y, others, derive(33), heteroscedastic)
    found = surrogate.predict(others)
    jets = surrogate.jets(others)
    for jet, values in zip(jets, (found.mean, found.aleatoric, found.epistemic), strict=True):
        assert isinstance(jet, Jet)
        assert values.dtype == np.float32
        np.testing.assert_allclose(jet.value[:, 0], values, rtol=1e-4, atol=1e-5)


def test_a_plain_network_knows_no_noise() -> None:
    x, y, others = toy()
    found = fit(x, y, others, derive(34), heteroscedastic=False).predict(others)
    assert not found.aleatoric.any()
    assert (found.epistemic > 0).all()
    assert np.corrcoef(found.mean, np.tanh(others[:, 0]) - others[:, 1])[0, 1] > 0.8


def test_the_aleatoric_uncertainty_is_larger_where_scores_are_noisier() -> None:
    x = derive(36).normal(size=(300, 5)).astype(np.float32)
    noise = np.where(x[:, 0] > 0, 0.8, 0.1)
    y = x[:, 1] + noise * derive(37).normal(size=len(x))
    surrogate = fit(x[:250], ((y - y.mean()) / y.std())[:250].astype(np.float32), x[250:], derive(38))
    for found in (surrogate.predict(x[250:]).aleatoric, surrogate.jets(x[250:])[1].value[:, 0]):
        assert found[noise[250:] == 0.8].mean() > 1.1 * found[noise[250:] == 0.1].mean()


@pytest.mark.parametrize("number", [3, 4])
def test_few_equal_scores_do_no_harm(number: int) -> None:
    x, _, others = toy(number)
    found = fit(x, np.zeros(number, np.float32), others, derive(35)).predict(others)
    for values in (found.mean, found.aleatoric, found.epistemic):
        assert np.isfinite(values).all()


def test_an_interval_joins_both_uncertainties() -> None:
    low, high = ScorePrediction(np.array([1.0]), np.array([3.0]), np.array([4.0])).interval(2.0)
    assert (low[0], high[0]) == (-9.0, 11.0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_orders_unseen_designs_as_well_as_a_gaussian_process_does() -> None:
    ours, theirs = [], []
    for seed in SEEDS:
        given = case(seed)
        rows, x = held_out(given, seed), points()
        ours.append(kendalltau(given.fit(derive(seed)).predict(x[rows]).mean, given.truth[rows]).statistic)
        kernel = ConstantKernel() * Matern(length_scale=5.0, nu=2.5) + WhiteKernel(0.1)
        process = GaussianProcessRegressor(kernel).fit(x[given.rows], given.scores)
        theirs.append(kendalltau(process.predict(x[rows]), given.truth[rows]).statistic)
    assert np.mean(ours) > 0.5
    assert np.mean(ours) > np.mean(theirs) - 0.05


@pytest.mark.slow
def test_nine_of_ten_outcomes_lie_in_the_ninety_percent_interval() -> None:
    inside = []
    for seed in SEEDS:
        given = case(seed)
        rows = held_out(given, seed)
        outcomes = given.truth[rows] + given.noise[rows] * derive(seed, "noise").normal(size=len(rows))
        low, high = given.fit(derive(seed)).predict(points()[rows]).interval(NINETY)
        inside.append(np.mean((low <= outcomes) & (outcomes <= high)))
    assert 0.8 < np.mean(inside) < 0.97


@pytest.mark.slow
def test_the_student_tracks_the_teacher() -> None:
    explained = []
    for seed in SEEDS:
        given, x = case(seed), points()
        surrogate = given.fit(derive(seed))
        rows = held_out(given, seed)
        xi = spread(surrogate.teacher, x[rows], derive(seed, "many"), samples=300)
        error = surrogate.predict(x[rows]).epistemic - xi
        explained.append(1 - np.mean(error**2) / xi.var())
    assert np.mean(explained) > 0.5
