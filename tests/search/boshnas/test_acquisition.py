import numpy as np
import pytest
from tests.search.boshnas.cases import case, points

from formwright.core.rng import derive
from formwright.search.boshnas import acquisition
from formwright.search.boshnas.acquisition import UpperBound, climb, climb_to_nearest, highest, most_uncertain
from formwright.search.boshnas.gobi import Ascent
from formwright.search.boshnas.parameters import Floats
from formwright.search.boshnas.surrogate import fit


def small_bound() -> tuple[UpperBound, Floats]:
    x = derive(50).normal(size=(400, 4)).astype(np.float32)
    y = -np.sum((x[:40] - 0.5) ** 2, axis=1)
    return UpperBound(fit(x[:40], (y - y.mean()) / y.std(), x[40:], derive(51)), 0.5, 0.25), x


def test_the_bound_is_the_mean_and_shares_of_both_uncertainties() -> None:
    bound, x = small_bound()
    found = bound.surrogate.predict(x)
    np.testing.assert_allclose(bound.uncertainty(x), 0.5 * found.aleatoric + 0.25 * found.epistemic, rtol=1e-5)
    np.testing.assert_allclose(bound(x), found.mean + bound.uncertainty(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(bound.jet(x).value[:, 0], bound(x), rtol=1e-4, atol=1e-5)


def test_gradient_and_curvature_of_the_bound_are_those_of_differences() -> None:
    bound, x = small_bound()
    jet, step = bound.jet(x), np.float32(0.05)
    move = step * np.eye(4, dtype=np.float32)[1]
    above, below = bound.jet(x + move), bound.jet(x - move)
    np.testing.assert_allclose(jet.slope[:, 1], (above.value - below.value) / (2 * step), atol=0.02)
    np.testing.assert_allclose(jet.curvature[:, 1], (above.slope[:, 1] - below.slope[:, 1]) / (2 * step), atol=0.05)


def test_the_highest_and_the_most_uncertain_come_first() -> None:
    bound, x = small_bound()
    assert highest(bound, x, derive(52))[:3] == np.argsort(-bound(x))[:3].tolist()
    assert most_uncertain(bound, x, derive(53))[:3] == np.argsort(-bound.uncertainty(x))[:3].tolist()


def test_a_climb_finds_the_highest_of_few_points() -> None:
    bound, x = small_bound()
    assert climb(bound, x, Ascent(), derive(54))[0] == highest(bound, x, derive(55))[0]


def test_points_on_the_way_up_compete_with_those_near_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    bound, x = small_bound()
    high, middle, low = (highest(bound, x, derive(55))[rank] for rank in (0, 200, 399))
    monkeypatch.setattr(acquisition, "NEIGHBOURS", 1)
    monkeypatch.setattr(acquisition, "ascend", lambda *_: [x[[middle, low]], x[[high]], x[[low, low]]])
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
