from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.report.figures import duration, evenly_spaced, figure, kind_of, long_count, score, short_count


@pytest.mark.parametrize(
    ("value", "name", "words"),
    [
        (0.81234567, "accuracy", "0.8123"),
        (-0.5, "matthews", "-0.5000"),
        (1234.567, "perplexity", "1,234.57"),
        (1234567.0, "params", "1,234,567"),
        (1234567.0, "params-body", "1,234,567"),
        (3.14159, "latency_ms", "3.14 ms"),
        (75.2, "train_seconds", "1 min 15 s"),
        (None, "accuracy", "\N{EN DASH}"),
    ],
)
def test_a_figure_follows_its_name(value: float | None, name: str, words: str) -> None:
    assert figure(value, name) == words


def test_kinds() -> None:
    assert [kind_of(name) for name in ("macs", "latency_ms", "seconds", "f1")] == [
        "count",
        "milliseconds",
        "seconds",
        "score",
    ]


def test_scores_have_four_digits_until_they_are_large() -> None:
    assert (score(99.99), score(100)) == ("99.9900", "100.00")


@pytest.mark.parametrize(
    ("value", "words"), [(0, "0"), (999, "999"), (1000, "1.00 k"), (12_345, "12.3 k"), (1.2e14, "120 T")]
)
def test_counts_have_three_digits(value: float, words: str) -> None:
    assert short_count(value) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.5, "0.50 s"), (59.4, "59 s"), (60, "1 min 0 s"), (3725, "1 h 2 min"), (90_000, "1 d 1 h")]
)
def test_durations_have_two_units(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1, "1"),
        (999_999, "999,999"),
        (1_000_000, "1.0 x 10^6"),
        (3_486_784_401_000, "3.5 x 10^12"),
        (5 * 10**400, "5.0 x 10^400"),
    ],
)
def test_long_counts_are_powers_of_ten(value: int, words: str) -> None:
    assert long_count(value) == words


@given(st.integers(0, 5_000), st.integers(2, 100))
def test_the_choice_is_even(count: int, most: int) -> None:
    chosen = evenly_spaced(count, most)
    assert len(chosen) == min(count, most)
    assert chosen == sorted(set(chosen))
    assert chosen[:1] == [0] * bool(count)
    assert chosen[-1:] == [count - 1] * bool(count)
    gaps = {after - before for before, after in pairwise(chosen)}
    assert not gaps or max(gaps) - min(gaps) <= 1
