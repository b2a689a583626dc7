import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from formwright.arch.manhattan import Floats, manhattan, manhattan_pairs
from formwright.core.rng import derive


def drawn(seed: int, rows: int, columns: int, width: int) -> tuple[Floats, Floats, Floats]:
    rng = derive(seed, "manhattan")
    counts = rng.integers(0, rng.integers(1, 9, size=width), size=(rows + columns, width)).astype(np.float32)
    counts += rng.integers(0, 3, size=width).astype(np.float32)
    return counts[:rows], counts[rows:], rng.integers(0, 20, size=width).astype(np.float32)


@given(st.integers(0, 10**9), st.integers(0, 7), st.integers(0, 7), st.integers(1, 9))
def test_it_agrees_with_scipy_exactly(seed: int, rows: int, columns: int, width: int) -> None:
    left, right, weights = drawn(seed, rows, columns, width)
    found = manhattan(left, right, weights)
    assert found.dtype == np.float32
    assert np.array_equal(found, cdist(left * weights, right * weights, "cityblock"))


def test_many_rows_are_done_in_strips() -> None:
    left, right, weights = drawn(0, 1_100, 3, 5)
    assert np.array_equal(manhattan(left, right, weights), cdist(left * weights, right * weights, "cityblock"))


@pytest.mark.parametrize("rows", [0, 1, 50])
def test_pairs_are_the_diagonal(rows: int) -> None:
    left, right, weights = drawn(1, rows, rows, 6)
    assert np.array_equal(manhattan_pairs(left, right, weights), np.diag(manhattan(left, right, weights)))
