import numpy as np
import pytest

from formwright.core.errors import IllegalInput
from formwright.tasks.rows import ImageRows, PlainText, SpanRows, Splits, TextRows, TranslationRows, View


def images(value: float = 0.0) -> ImageRows:
    return ImageRows(np.full((2, 1, 4, 4), value, np.float32), np.array([0, 1]))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (TextRows((("a b",),), (1,)), TextRows((("a", "b"),), (1,))),
        (TextRows((("a",),), (0,)), TextRows((("a",),), (1,))),
        (PlainText(("a", "b")), PlainText(("a b",))),
        (TranslationRows(("a",), ("b",)), TranslationRows(("b",), ("a",))),
        (images(), images(0.5)),
    ],
)
def test_different_rows_have_different_digests(first: TextRows, second: TextRows) -> None:
    assert first.digest != second.digest


@pytest.mark.parametrize(
    "make",
    [
        lambda: TextRows((("a",),), (0, 1)),
        lambda: TranslationRows(("a",), ()),
        lambda: ImageRows(np.zeros((2, 1, 4, 4), np.float32), np.zeros(3, np.int64)),
    ],
)
def test_rows_and_labels_must_be_equally_many(make) -> None:
    with pytest.raises(IllegalInput, match="equally many"):
        make()


ROWS = SpanRows(("who?", "why?"), ("Ann did.", "Ann did."), ((("Ann", 0), ("Ann did", 0)), ()))


def test_digests_are_those_of_the_content() -> None:
    first, second = TextRows((("a", "b"),), (1,)), TextRows((("a", "b"),), (1,))
    assert (first, first.digest) == (second, second.digest)
    turned = ImageRows(np.asfortranarray(images(0.5).pixels), np.array([0, 1], np.int64))
    assert turned.digest == images(0.5).digest
    assert ROWS.digest == SpanRows(ROWS.questions, ROWS.contexts, ROWS.answers).digest
    others = [
        SpanRows(("who?", "how?"), ROWS.contexts, ROWS.answers),
        SpanRows(ROWS.questions, ("Ann did.", "Ann did!"), ROWS.answers),
        SpanRows(ROWS.questions, ROWS.contexts, ((("Ann", 0),), ())),
    ]
    assert len({ROWS.digest, *(other.digest for other in others)}) == 4


@pytest.mark.parametrize("answer", [("Ann", 1), ("Bob", 0), ("", 0), (".", -1), ("did.", 99)])
def test_an_answer_that_stands_elsewhere_is_refused(answer: tuple[str, int]) -> None:
    with pytest.raises(IllegalInput, match="row 1"):
        SpanRows(ROWS.questions, ROWS.contexts, ((), (answer,)))


def test_splits_show_no_test_rows() -> None:
    view = Splits(PlainText(("a",)), PlainText(("b",)), PlainText(("c",))).view
    assert view == View(PlainText(("a",)), PlainText(("b",)))
    assert not hasattr(view, "test")
    splits = Splits(PlainText(("a",)), PlainText(("b",)), None, division="whole")
    assert (splits.test, splits.division) == (None, "whole")
    assert splits.view == View(PlainText(("a",)), PlainText(("b",)))
    assert [len(rows) for rows in (PlainText(("a", "b")), TranslationRows(("a",), ("b",)), images())] == [2, 1, 2]
    assert (len(ROWS), ROWS.texts) == (2, (("Ann", "Ann did"), ()))
    assert not ROWS.answerable
    assert SpanRows(ROWS.questions[:1], ROWS.contexts[:1], ROWS.answers[:1]).answerable
    with pytest.raises(IllegalInput, match="equally many"):
        SpanRows(("who?",), ("Ann did.",), ())
