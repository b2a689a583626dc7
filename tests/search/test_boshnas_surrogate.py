from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.stats import kendalltau
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from formwright.core.records import History
from formwright.core.rng import derive
from formwright.search import boshnas as module
from formwright.search.boshnas import (
    Ascent,
    ScaledListing,
    ScorePrediction,
    Surrogate,
    UpperBound,
    ascend,
    climb,
    climb_to_nearest,
    fit,
    highest,
    most_uncertain,
    nearest,
    spread,
)
from formwright.search.boshnas_networks import Floats, Jet
from formwright.search.listing import listing
from formwright.search.proposals import anything
from formwright.space.zoo import load_space


@cache
def points() -> Floats:
    """Return the points of all 9,312 designs."""
    terrain = ScaledListing.of(listing(load_space("flexibert-nano"), "one-hot"), anything)
    return terrain.candidates(History()).points


@dataclass(frozen=True, eq=False)
class Case:
    """Hold the true scores of all designs and the rows and noisy scores of some of them, in units of the latter."""

    truth: Floats
    noise: Floats
    rows: NDArray[np.intp]
    scores: Floats

    @property
    def unseen(self) -> NDArray[np.intp]:
        """Return the rows of the other designs."""
        return np.setdiff1d(np.arange(len(self.truth)), self.rows)

    def fit(self, rng: Generator, heteroscedastic: bool = True) -> Surrogate:
        """Fit a surrogate to the noisy scores."""
        x = points()
        return fit(x[self.rows], self.scores, x[rng.integers(len(x), size=256)], rng, heteroscedastic)


def case(seed: int, number: int = 100) -> Case:
    """Draw a problem and observe a number of designs."""
    rng, x = derive(seed, "case"), points()
    linear = x @ rng.normal(size=x.shape[1])
    pairs = np.einsum("ni,ij,nj->n", x, rng.normal(size=(x.shape[1], x.shape[1])), x)
    mixed = _standard(linear) + 0.4 * _standard(pairs)
    truth = _standard(-np.log1p(np.exp(-mixed)))  # the better, the smaller the differences, as with accuracies
    noise = np.where(x[:, 0] > 0, 0.4, 0.2)
    rows = rng.choice(len(x), size=number, replace=False)
    drawn = truth[rows] + noise[rows] * rng.normal(size=number)
    scale = drawn.std()
    return Case((truth - drawn.mean()) / scale, noise / scale, rows, _standard(drawn).astype(np.float32))


def _standard(values: Floats) -> Floats:
    return (values - values.mean()) / values.std()


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


def small_bound() -> tuple[UpperBound, Floats]:
    x = derive(50).normal(size=(400, 4)).astype(np.float32)
    y = -np.sum((x[:40] - 0.5) ** 2, axis=1)
    return UpperBound(fit(x[:40], (y - y.mean()) / y.std(), x[40:], derive(51)), 0.5, 0.25), x


def test_the_bound_and_its_derivatives() -> None:
    bound, x = small_bound()
    found = bound.surrogate.predict(x)
    np.testing.assert_allclose(bound.uncertainty(x), 0.5 * found.aleatoric + 0.25 * found.epistemic, rtol=1e-5)
    np.testing.assert_allclose(bound(x), found.mean + bound.uncertainty(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(bound.jet(x).value[:, 0], bound(x), rtol=1e-4, atol=1e-5)
    jet, step = bound.jet(x), np.float32(0.05)
    move = step * np.eye(4, dtype=np.float32)[1]
    above, below = bound.jet(x + move), bound.jet(x - move)
    np.testing.assert_allclose(jet.slope[:, 1], (above.value - below.value) / (2 * step), atol=0.02)
    np.testing.assert_allclose(jet.curvature[:, 1], (above.slope[:, 1] - below.slope[:, 1]) / (2 * step), atol=0.05)


def test_the_highest_come_first_and_a_climb_finds_the_highest_of_few() -> None:
    bound, x = small_bound()
    assert highest(bound, x, derive(52))[:3] == np.argsort(-bound(x))[:3].tolist()
    assert most_uncertain(bound, x, derive(53))[:3] == np.argsort(-bound.uncertainty(x))[:3].tolist()
    assert climb(bound, x, Ascent(), derive(54))[0] == highest(bound, x, derive(55))[0]


def test_points_on_the_way_up_compete_with_those_near_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    bound, x = small_bound()
    high, middle, low = (highest(bound, x, derive(55))[rank] for rank in (0, 200, 399))
    monkeypatch.setattr(module, "NEIGHBOURS", 1)
    monkeypatch.setattr(module, "ascend", lambda *_: [x[[middle, low]], x[[high]], x[[low, low]]])
    assert climb(bound, x, Ascent(), derive(54)) == [high, middle, low]


def test_a_climb_to_the_nearest_asks_for_the_neighbour_of_the_highest_place() -> None:
    bound, x = small_bound()
    rows = climb_to_nearest(bound, x, Ascent(most_steps=200), derive(56))
    grid = derive(57).uniform(x.min(axis=0), x.max(axis=0), size=(20_000, 4)).astype(np.float32)
    top = grid[np.argsort(-bound(grid))[:5]].mean(axis=0)
    order = np.argsort(np.linalg.norm(x - top, axis=1))
    assert rows[0] in order[:10]


@pytest.mark.slow
def test_a_climb_nearly_finds_the_highest_of_all_designs() -> None:
    gaps, nearest_gaps = [], []
    for seed in range(1, 6):
        given = case(seed, number=60)
        bound, rng = UpperBound(given.fit(derive(seed)), 0.5, 0.5), derive(seed, "climb")
        x = points()[given.unseen]
        values = bound(x)
        for search, found in ((climb, gaps), (climb_to_nearest, nearest_gaps)):
            found.append((values.max() - values[search(bound, x, Ascent(), rng)[0]]) / values.std())
    assert np.mean(gaps) < 0.1
    assert np.mean(gaps) < np.mean(nearest_gaps) < 1.5


PEAK = np.array([0.5, -0.25, 3.0], dtype=np.float32)
STEEPNESS = np.array([1.0, 20.0, 0.5], dtype=np.float32)
LOW, HIGH = -np.ones(3, np.float32), np.ones(3, np.float32)


def hill(x: Floats) -> Jet:
    """Fall off from the peak, in one direction much faster than in the others."""
    offset = Jet.at(x).shift(-PEAK).square() @ STEEPNESS[:, None]
    return offset.scale(-0.5)


def starts() -> Floats:
    return derive(40).uniform(-1, 1, size=(6, 3)).astype(np.float32)


@pytest.mark.parametrize("second_order", [True, False])
def test_every_start_reaches_the_peak_or_the_side_of_the_box_that_is_nearest_to_it(second_order: bool) -> None:
    end = ascend(hill, starts(), LOW, HIGH, Ascent(second_order, most_steps=300))[-1]
    np.testing.assert_allclose(end, np.tile(np.clip(PEAK, LOW, HIGH), (6, 1)), atol=0.03)
    assert end.dtype == np.float32


def test_curvature_makes_the_ascent_shorter() -> None:
    asked: dict[bool, int] = {}
    for second_order in (True, False):
        calls: list[Floats] = []

        def counted(x: Floats, calls: list[Floats] = calls) -> Jet:
            calls.append(x)
            return hill(x)

        ascend(counted, starts(), LOW, HIGH, Ascent(second_order, most_steps=200))
        asked[second_order] = len(calls)
    assert asked[True] < 0.5 * asked[False]


def test_stages_are_those_after_1_2_4_8_steps_and_the_end() -> None:
    visited: list[Floats] = []

    def watched(x: Floats) -> Jet:
        visited.append(x)
        return hill(x)

    stages = ascend(watched, starts(), LOW, HIGH, Ascent(most_steps=10, still=0.0))
    assert len(stages) == 5
    for stage, step in zip(stages[:-1], (1, 2, 4, 8), strict=True):
        np.testing.assert_array_equal(stage, visited[step])


def test_an_ascent_that_stands_still_ends_at_once() -> None:
    peak = np.tile(np.clip(PEAK, LOW, HIGH), (2, 1))
    stages = ascend(hill, peak, LOW, HIGH, Ascent())
    assert len(stages) == 1
    np.testing.assert_allclose(stages[0], peak, atol=1e-3)


@pytest.mark.parametrize("number", [1, 5, 40, 99])
def test_the_nearest_are_those_of_a_plain_search(number: int) -> None:
    rng = derive(41)
    points, targets = rng.normal(size=(40, 6)).astype(np.float32), rng.normal(size=(7, 6)).astype(np.float32)
    distance = np.linalg.norm(points[None] - targets[:, None], axis=2)
    for rows, expected in zip(nearest(points, targets, number), np.argsort(distance, axis=1), strict=True):
        assert set(rows.tolist()) == set(expected[:number].tolist())
