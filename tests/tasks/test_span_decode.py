import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tasks.span_cases import TOKENISER, pointing, span_rows

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.tasks.span_decode import decode_spans
from formwright.tasks.span_metrics import exact_match, span_f1
from formwright.tasks.spans import SpanRows
from formwright.tasks.windows import Windows, encode_spans

ROWS = SpanRows(("new?",), ("low new wide newer",), ((("new", 4),),))
WINDOWS = encode_spans(ROWS, TOKENISER, 16)


def scored(**places: tuple[float, float]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Score words of the context, or `null`, as (first token, last token)."""
    tokens = [TOKENISER.vocabulary[index] for index in WINDOWS.encoded.tokens[0]]
    scores = np.zeros((2, len(tokens)))
    for word, pair in places.items():
        place = 0 if word == "null" else len(tokens) - 1 - tokens[::-1].index(word)
        scores[:, place] = pair
    return [scores[0]], [scores[1]]


@given(span_rows(longest=3), st.integers(30, 60), st.integers(0, 5))
def test_scores_that_point_at_the_answers_give_them(rows: SpanRows, length: int, padding: int) -> None:
    windows = encode_spans(rows, TOKENISER, length)
    answers = decode_spans(*pointing(windows, padding), windows, rows, unanswerable=True)
    assert exact_match(answers, rows.texts) == span_f1(answers, rows.texts) == 1.0


def slow(start, end, windows: Windows, row: int, longest: int) -> tuple[float, set[tuple[int, int]]]:
    """List the best spans of a row by trying all."""
    found: dict[tuple[int, int], float] = {}
    for window in np.flatnonzero(windows.rows == row):
        inside = np.flatnonzero(windows.starts[window] >= 0)
        for first in inside:
            for last in inside:
                if first <= last < first + longest:
                    place = int(windows.starts[window][first]), int(windows.ends[window][last])
                    score = start[window][first] + end[window][last]
                    found[place] = max(found.get(place, -np.inf), score)
    best = max(found.values(), default=-np.inf)
    return best, {place for place, score in found.items() if score == best}


@given(span_rows(), st.integers(1, 12), st.integers(0, 10**6))
def test_the_best_span_of_all_windows_is_found(rows: SpanRows, longest: int, seed: int) -> None:
    windows = encode_spans(rows, TOKENISER, 20)
    rng = derive(seed)
    start, end = ([rng.normal(size=length) for length in windows.encoded.tokens.lengths] for _ in range(2))
    plain = decode_spans(start, end, windows, rows, longest=longest)
    picky = decode_spans(start, end, windows, rows, unanswerable=True, longest=longest, threshold=0.5)
    for row, context in enumerate(rows.contexts):
        best, places = slow(start, end, windows, row, longest)
        texts = {context[first:last] for first, last in places} or {""}
        assert plain[row] in texts
        null = min(start[window][0] + end[window][0] for window in np.flatnonzero(windows.rows == row))
        assert picky[row] in ({""} if null > best + 0.5 else texts)


def test_a_span_does_not_end_before_it_starts() -> None:
    assert decode_spans(*scored(wide=(5, 0), low=(0, 4)), WINDOWS, ROWS) == ["wide"]
    assert decode_spans(*scored(low=(5, 0), wide=(0, 4)), WINDOWS, ROWS) == ["low new wide"]


def test_a_span_is_no_longer_than_wanted() -> None:
    scores = scored(low=(5, 1), wide=(0, 4))
    assert decode_spans(*scores, WINDOWS, ROWS, longest=2) == ["low"]
    assert decode_spans(*scores, WINDOWS, ROWS, longest=1) == ["low"]


def test_no_answer_must_beat_the_best_answer_by_the_threshold() -> None:
    scores = scored(new=(1, 1), null=(2, 1))
    assert decode_spans(*scores, WINDOWS, ROWS) == ["new"]
    assert decode_spans(*scores, WINDOWS, ROWS, unanswerable=True) == [""]
    assert decode_spans(*scores, WINDOWS, ROWS, unanswerable=True, threshold=1.0) == ["new"]
    assert decode_spans(*scored(new=(1, 1), null=(1, 1)), WINDOWS, ROWS, unanswerable=True) == ["new"]


def test_no_answer_must_win_in_every_window() -> None:
    rows = SpanRows(("new?",), ("low new wide newer " * 5,), ((),))
    windows = encode_spans(rows, TOKENISER, 16)
    start = [np.zeros(length) for length in windows.encoded.tokens.lengths]
    end = [row.copy() for row in start]
    for row in start:
        row[0] = 3.0
    assert decode_spans(start, end, windows, rows, unanswerable=True) == [""]
    start[1][0] = -1.0
    assert decode_spans(start, end, windows, rows, unanswerable=True) != [""]


def test_an_empty_text_has_no_answer() -> None:
    rows = SpanRows(("new?",), (" ",), ((),))
    windows = encode_spans(rows, TOKENISER, 16)
    scores = [np.zeros(length) for length in windows.encoded.tokens.lengths]
    assert decode_spans(scores, scores, windows, rows) == [""]


def test_scores_that_are_missing_are_refused() -> None:
    start, end = scored()
    with pytest.raises(IllegalInput, match="there are 1"):
        decode_spans(start, [], WINDOWS, ROWS)
    with pytest.raises(IllegalInput, match="window 0 has"):
        decode_spans(start, [end[0][:-1]], WINDOWS, ROWS)
