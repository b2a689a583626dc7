"""Wrapping: lines fit, and what belongs together stays together."""

from hypothesis import given
from hypothesis import strategies as st

from formwright.report.wrap import shortened, wrapped


def test_heads_and_kernels_are_not_torn_apart() -> None:
    words = "dynamic convolution, kernel 9, 4 heads x 32"
    assert wrapped(words, 36) == ["dynamic convolution, kernel 9,", "4 heads x 32"]
    assert wrapped(words, 28) == ["dynamic convolution,", "kernel 9, 4 heads x 32"]


def test_formulas_stay_whole_where_they_fit() -> None:
    words = "4 heads x 64, softmax(Q / √d)·(K + Q)"
    assert wrapped(words, 30, indent=2) == ["4 heads x 64,", "  softmax(Q / √d)·(K + Q)"]
    assert wrapped(words, 18) == ["4 heads x 64,", "softmax(Q / √d)·(K", "+ Q)"]


def test_operands_of_one_operation_stay_together_where_they_fit() -> None:
    words = "4 heads x 16, euclidean(Q, K)·K - (K + Q + Q)"
    assert wrapped(words, 36, indent=4) == ["4 heads x 16,", "    euclidean(Q, K)·K - (K + Q + Q)"]


def test_long_formulas_are_broken_behind_brackets_and_products() -> None:
    words = "softsign(euclidean(softmax(P),K))·cosine(Q,softmax(K))"
    assert wrapped(words, 20, indent=2) == ["softsign(euclidean(", "  softmax(P),K))·", "  cosine(Q,softmax(", "  K))"]
    assert wrapped("unbreakable", 4) == ["unbr", "eaka", "ble"]


def test_too_many_lines_end_in_an_ellipsis() -> None:
    assert wrapped("one two three four", 5, most=2) == ["one", "two …"]
    assert wrapped("", 5) == []


@given(st.text("ab x12+/, (·", max_size=80), st.integers(4, 40))
def test_lines_fit(words: str, letters: int) -> None:
    assert all(len(line) <= letters for line in wrapped(words, letters, indent=2))


@given(st.text(max_size=20), st.integers(0, 25))
def test_shortened_words_fit_and_show_the_cut(words: str, letters: int) -> None:
    cut = shortened(words, letters)
    assert len(cut) <= letters
    if len(words) <= letters:
        assert cut == words
    elif letters:
        assert cut == words[: letters - 1] + "…"
