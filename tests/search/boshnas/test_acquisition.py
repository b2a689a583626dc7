import numpy as np
import pytest
from tests.search.boshnas.cases import case, points

from formwright.core.rng import derive
from formwright.search.boshnas import acquisition
from formwright.search.boshnas.acquisition import (
    Ascent,
    UpperBound,
    ascend,
    climb,
    climb_to_nearest,
    highest,
    most_uncertain,
    nearest,
)
from formwright.search.boshnas.networks import Floats, Jet
from formwright.search.boshnas.surrogate import fit


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
    bound, x = small_bound()
    jet, step = bound.jet(x), np.float32(0.05)
    move = step * np.eye(4, dtype=np.float32)[1]
    above, below = bound.jet(x + move), bound.jet(x - move)
    np.testing.assert_allclose(jet.slope[:, 1], (above.value - below.value) / (2 * step), atol=0.02)
    np.testing.assert_allclose(jet.curvature[:, 1], (above.slope[:, 1] - below.slope[:, 1]) / (2 * step), atol=0.05)


def test_the_highest_come_first_and_a_climb_finds_the_highest_of_few() -> None:
    bound, x = small_bound()
    assert highest(bound, x, derive(52))[:3] == np.argsort(-bound(x))[:3].tolist()
    assert most_uncertain(bound, x, derive(53))[:3] == np.argsort(-bound.uncertainty(x))[:3].tolist()
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
