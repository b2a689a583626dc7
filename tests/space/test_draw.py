from collections import Counter
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator, default_rng

from formwright.space.draw import below, pick, weighted


class Script:
    """Stand in for a generator whose bytes are known."""

    def __init__(self, draws: list[int]) -> None:
        self._draws = iter(draws)

    def bytes(self, length: int) -> bytes:
        return next(self._draws).to_bytes(length, "little")


@given(bound=st.integers(1, 2**200), seed=st.integers(0, 2**32 - 1))
def test_draws_lie_below_the_bound_and_repeat_with_the_seed(bound: int, seed: int) -> None:
    drawn = below(default_rng(seed), bound)
    assert 0 <= drawn < bound
    assert drawn == below(default_rng(seed), bound)


@pytest.mark.parametrize("bound", [5 * 2**61, 2**63, 2**63 + 1, 2**64, 5 * 2**64, 5 * 10**40])
def test_large_draws_are_uniform(bound: int) -> None:
    rng = default_rng(1)
    fifths = Counter(below(rng, bound) * 5 // bound for _ in range(5_000))
    assert all(fifths[fifth] == pytest.approx(1_000, abs=110) for fifth in range(5))


def test_large_draws_reach_the_lowest_bits() -> None:
    rng = default_rng(1)
    odd = sum(below(rng, 2**100 + 7) % 2 for _ in range(4_000))
    assert odd == pytest.approx(2_000, abs=130)


def test_a_draw_of_the_bound_itself_is_drawn_again() -> None:
    bound = 2**64 - 1
    assert below(cast(Generator, Script([bound, 5])), bound) == 5
    assert below(cast(Generator, Script([bound - 1])), bound) == bound - 1


def test_weights_set_the_probabilities_and_zero_means_never() -> None:
    rng = default_rng(2)
    seen = Counter(weighted(rng, [0, 1, 3, 0, 1]) for _ in range(5_000))
    assert set(seen) == {1, 2, 4}
    assert seen[2] == pytest.approx(3_000, abs=140)


def test_weights_beyond_machine_words() -> None:
    rng = default_rng(2)
    seen = Counter(weighted(rng, [10**30, 3 * 10**30]) for _ in range(4_000))
    assert seen[1] == pytest.approx(3_000, abs=120)


def test_running_totals_draw_what_weights_draw() -> None:
    assert [pick(default_rng(seed), [1, 3, 6]) for seed in range(20)] == [
        weighted(default_rng(seed), [1, 2, 3]) for seed in range(20)
    ]
