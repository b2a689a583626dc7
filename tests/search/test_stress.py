import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from formwright.core.rng import derive
from formwright.search.stress import Floats, apart, arrange, place

SEEDS = st.integers(0, 1_000)


def cloud(seed: int, number: int, dimensions: int) -> Floats:
    return 10 * derive(seed, "cloud").standard_normal((number, dimensions))


def stress(points: Floats, distances: Floats) -> float:
    return float(((cdist(points, points) - distances) ** 2).sum())


@settings(max_examples=20)
@given(SEEDS, st.integers(1, 4))
def test_points_that_exist_are_found_again_up_to_a_turn(seed: int, dimensions: int) -> None:
    distances = cdist(*[cloud(seed, 12, dimensions)] * 2)
    points = arrange(distances, dimensions)
    assert points.shape == (12, dimensions)
    assert np.allclose(cdist(points, points), distances, atol=1e-6)


@settings(max_examples=20)
@given(SEEDS, st.integers(1, 4))
def test_further_points_are_placed_where_they_are(seed: int, dimensions: int) -> None:
    points = cloud(seed, 70, dimensions)
    found = place(cdist(points[40:], points[:40]), points[:40])
    assert np.allclose(found, points[40:], atol=1e-2)


def test_axes_that_hold_nothing_are_left_out() -> None:
    line = np.arange(12.0)[:, None]
    points = arrange(cdist(line, line), 5)
    assert points.shape == (12, 1)
    assert points[:, 0] == pytest.approx(np.arange(12) - 5.5) or points[:, 0] == pytest.approx(5.5 - np.arange(12))


@settings(max_examples=20)
@given(SEEDS)
def test_points_lie_along_their_principal_axes_the_widest_first(seed: int) -> None:
    points = arrange(cdist(*[cloud(seed, 12, 6)] * 2, "cityblock"), 4)
    spread = points.T @ points
    assert np.allclose(points.mean(axis=0), 0, atol=1e-6)
    assert np.allclose(spread, np.diag(np.diag(spread)), atol=1e-6 * spread.max())
    assert (np.diff(np.diag(spread)) <= 0).all()
    assert (points[np.abs(points).argmax(axis=0), range(4)] > 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_sum_of_squares_is_as_small_as_a_general_minimiser_gets_it(seed: int) -> None:
    distances = cdist(*[cloud(seed, 40, 8)] * 2, "cityblock")
    points = arrange(distances, 3)

    def worth(flat: Floats) -> tuple[float, Floats]:
        moved = flat.reshape(points.shape)
        between = cdist(moved, moved)
        ratio = np.divide(between - distances, between, out=np.zeros_like(between), where=between > 0)
        return ((between - distances) ** 2).sum(), 4 * (ratio.sum(axis=1)[:, None] * moved - ratio @ moved).ravel()

    best = minimize(worth, points.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 2_000}).fun
    assert best <= stress(points, distances) < 1.01 * best


@pytest.mark.parametrize("seed", range(5))
def test_a_placed_point_is_where_no_move_makes_its_sum_smaller(seed: int) -> None:
    points = cloud(seed, 61, 8)
    distances = cdist(points, points, "cityblock")
    anchors = arrange(distances[:60, :60], 3)
    here = place(distances[60:, :60], anchors)

    def worth(there: Floats) -> float:
        return float(((cdist(there[None], anchors) - distances[60:, :60]) ** 2).sum())

    best = minimize(worth, here[0]).fun
    assert best <= worth(here[0]) < 1.01 * best


def test_an_anchor_is_placed_on_itself() -> None:
    distances = cdist(*[cloud(0, 50, 6)] * 2, "cityblock")
    anchors = arrange(distances, 4)
    assert np.abs(place(distances, anchors) - anchors).max() < 0.05 * anchors.std()


def test_a_point_is_the_same_alone_and_among_many() -> None:
    points = cloud(1, 700, 5)
    distances = cdist(points, points[:50], "cityblock")
    anchors = arrange(distances[:50], 3)
    together = place(distances, anchors)
    for row in (0, 255, 256, 699):
        assert np.allclose(place(distances[row : row + 1], anchors), together[row], atol=1e-2)


@pytest.mark.parametrize("number", [1, 2, 9])
def test_points_that_are_not_apart_coincide(number: int) -> None:
    nothing = np.zeros((number, number))
    points = arrange(nothing, 4)
    assert len(points) == number
    assert not points.any()
    assert not place(nothing, points).any()


def test_nothing_is_placed_nowhere() -> None:
    assert place(np.zeros((0, 5)), cloud(0, 5, 2)).shape == (0, 2)


@given(SEEDS)
def test_euclidean_distances_are_scipys(seed: int) -> None:
    points, others = cloud(seed, 9, 3), cloud(seed + 1, 4, 3)
    assert np.allclose(apart(points, others), cdist(points, others))
    assert np.allclose(apart(points, points), cdist(points, points), atol=1e-5)
