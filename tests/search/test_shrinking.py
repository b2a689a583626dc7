import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.search.shrinking import bins, rounds, survivors


def test_bins_have_equal_extent_and_the_largest_is_in_the_last() -> None:
    sizes = [[0], [24], [25], [49], [50], [99], [100]]
    assert bins(sizes, 4).tolist() == [0, 0, 1, 1, 2, 3, 3]


def test_bins_are_cells_of_size_and_latency() -> None:
    costs = [[1, 1.0], [1, 9.0], [9, 1.0], [9, 9.0], [2, 2.0]]
    assert bins(costs, 2).tolist() == [0, 1, 2, 3, 0]
    assert bins([[1, 1.0], [9, 9.0]], 10).tolist() == [0, 1]  # cells that nobody is in have no number


def test_a_cost_that_all_share_makes_no_bins() -> None:
    assert bins([[5, 1.0], [5, 2.0]], 2).tolist() == [0, 1]
    assert bins([[5], [5], [5]]).tolist() == [0, 0, 0]
    assert bins(np.zeros((0, 2))).tolist() == []


def test_the_worse_half_of_each_bin_goes() -> None:
    losses = [0.4, 0.1, 0.3, 0.2, 9.0, 8.0, 7.0]
    assert survivors(losses, [0, 0, 0, 0, 1, 1, 1], least=1).tolist() == [
        False, True, False, True, False, True, True,
    ]  # fmt: skip


def test_no_bin_shrinks_below_the_least() -> None:
    losses = np.arange(30.0)
    of_bins = np.repeat([0, 1, 2], [15, 12, 3])
    stays = survivors(losses, of_bins)
    assert np.bincount(of_bins[stays]).tolist() == [10, 10, 3]
    assert stays[:10].all()
    assert not stays[10:15].any()


def test_who_was_not_judged_stays() -> None:
    losses = [0.4, np.nan, 0.3, np.nan, 0.2, 0.1]
    assert survivors(losses, [0] * 6, least=1).tolist() == [False, True, False, True, True, True]
    assert survivors([np.nan, np.nan], [0, 0], least=0).all()
    assert survivors([], []).tolist() == []


def test_infinite_losses_go_first_and_of_equals_the_first_stays() -> None:
    assert survivors([np.inf, 0.5, np.inf, 0.5], [0] * 4, least=1).tolist() == [False, True, False, True]
    assert survivors([0.5, 0.5], [0, 0], least=1).tolist() == [True, False]


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1) | st.none()), max_size=60), st.integers(0, 6))
def test_half_goes_and_nobody_who_stays_is_worse_than_one_who_went(
    rows: list[tuple[int, float | None]], least: int
) -> None:
    of_bins = np.array([one for one, _ in rows], dtype=np.intp)
    losses = np.array([np.nan if loss is None else loss for _, loss in rows], dtype=np.float64)
    stays = survivors(losses, of_bins, least)
    for number in set(of_bins.tolist()):
        inside = of_bins == number
        judged = inside & ~np.isnan(losses)
        gone = inside & ~stays
        assert gone.sum() == min(judged.sum() // 2, max(inside.sum() - least, 0))
        assert not (gone & ~judged).any()
        if gone.any():
            assert losses[gone].min() >= losses[judged & stays].max()


@pytest.mark.parametrize("least", [1, 10])
@pytest.mark.parametrize("candidates", [1, 2, 7, 10, 11, 100, 5_000])
def test_rounds_are_counted_right(candidates: int, least: int) -> None:
    left, rng = np.zeros(candidates, dtype=np.intp), derive(0)
    for _ in range(rounds(candidates, least)):
        assert len(left) > least
        left = left[survivors(rng.random(len(left)), left, least)]
    assert len(left) == min(candidates, least)


def test_a_whole_block_of_the_published_space_shrinks_in_no_time() -> None:
    rng = derive(1)
    costs = rng.random((233_280, 2))
    of_bins, losses = bins(costs), rng.random(len(costs))
    assert of_bins.max() == 99
    left = np.arange(len(costs))
    for _ in range(15):
        left = left[survivors(losses[left], of_bins[left])]
    assert np.bincount(of_bins[left]).tolist() == [10] * 100
    for number in (0, 57):
        inside = np.flatnonzero(of_bins == number)
        assert set(left[of_bins[left] == number]) == set(inside[np.argsort(losses[inside])[:10]])


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(IllegalInput, match=r"a row of finite costs for each candidate, not an array of shape \(3,\)"):
        bins([1, 2, 3])
    with pytest.raises(IllegalInput, match="parts is 0"):
        bins([[1]], 0)
    with pytest.raises(IllegalInput, match=r"losses of shape \(2,\) for bins of shape \(3,\)"):
        survivors([1, 2], [0, 0, 0])
