"""An even choice is no larger than asked for, and has both ends."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from formwright.report.evenly import evenly


@given(st.integers(0, 5_000), st.integers(2, 100))
def test_the_choice_is_even(count: int, most: int) -> None:
    chosen = evenly(count, most)
    assert len(chosen) == min(count, most)
    assert chosen == sorted(set(chosen))
    assert chosen[:1] == [0] * bool(count)
    assert chosen[-1:] == [count - 1] * bool(count)
    gaps = {after - before for before, after in pairwise(chosen)}
    assert not gaps or max(gaps) - min(gaps) <= 1
