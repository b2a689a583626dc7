import numpy as np
import pytest

from formwright.core.rng import derive
from formwright.search.boshnas.gobi import Ascent, ascend, nearest
from formwright.search.boshnas.jets import Jet
from formwright.search.boshnas.parameters import Floats

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
