import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.core.rng import derive
from formwright.search.tournaments import clears, draw, height, losers, winners


@given(st.integers(1, 12), st.integers(1, 15), st.integers(0, 20))
def test_members_are_drawn_without_repeats(population: int, size: int, rows: int) -> None:
    drawn = draw(derive(0, population, size), rows, population, size)
    assert drawn.shape == (rows, min(size, population))
    for row in drawn.tolist():
        assert len(set(row)) == len(row)
        assert set(row) <= set(range(population))


@pytest.mark.parametrize("size", [3, 5])
def test_everybody_is_drawn_equally_often_at_every_place(size: int) -> None:
    drawn = draw(derive(1), 40_000, 5, size)
    for place in range(size):
        shares = np.bincount(drawn[:, place], minlength=5) / len(drawn)
        np.testing.assert_allclose(shares, 0.2, atol=0.01)


def test_a_row_does_not_depend_on_how_many_follow() -> None:
    np.testing.assert_array_equal(draw(derive(2), 3, 9, 4), draw(derive(2), 50, 9, 4)[:3])


def test_the_fittest_wins_and_the_least_fit_loses_the_first_of_equals() -> None:
    fitness = np.array([[0.2, 0.9, 0.1], [0.5, 0.5, 0.5]])
    assert winners(fitness).tolist() == [1, 0]
    assert losers(fitness).tolist() == [2, 0]


def test_a_hurdle_is_the_mean_and_only_those_above_it_clear_it() -> None:
    fitness = np.array([[0.25, 0.5, 0.75], [0.0, 0.0, 0.0]])
    assert height(fitness).tolist() == [0.5, 0.0]
    assert clears(fitness, height(fitness)[:, np.newaxis]).tolist() == [[False, False, True], [False] * 3]
    # 0 is a hurdle as well
    assert clears(np.array([-0.1, 0.0, 0.1]), 0.0).tolist() == [False, False, True]


@given(st.floats(-1e6, 1e6), st.integers(1, 200))
def test_nobody_is_above_the_mean_of_equals(value: float, number: int) -> None:
    equal = np.full(number, value)
    assert not clears(equal, height(equal)).any()
