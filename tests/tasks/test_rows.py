import numpy as np
import pytest

from formwright.core.errors import IllegalInput
from formwright.tasks.rows import ImageRows, PlainText, Splits, TextRows, TranslationRows, View


def images(value: float = 0.0) -> ImageRows:
    return ImageRows(np.full((2, 1, 4, 4), value, np.float32), np.array([0, 1]))


def test_equal_rows_are_equal_and_have_one_digest() -> None:
    first, second = TextRows((("a", "b"),), (1,)), TextRows((("a", "b"),), (1,))
    assert first == second
    assert first.digest == second.digest


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


def test_the_digest_of_images_does_not_depend_on_their_layout_in_memory() -> None:
    turned = ImageRows(np.asfortranarray(images(0.5).pixels), np.array([0, 1], np.int64))
    assert turned.digest == images(0.5).digest


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


def test_rows_are_counted() -> None:
    assert [len(rows) for rows in (PlainText(("a", "b")), TranslationRows(("a",), ("b",)), images())] == [2, 1, 2]


def test_the_view_of_splits_has_no_test_rows() -> None:
    view = Splits(PlainText(("a",)), PlainText(("b",)), PlainText(("c",))).view
    assert view == View(PlainText(("a",)), PlainText(("b",)))
    assert not hasattr(view, "test")


def test_splits_may_lack_a_test_and_say_how_they_were_divided() -> None:
    splits = Splits(PlainText(("a",)), PlainText(("b",)), None, division="whole")
    assert (splits.test, splits.division) == (None, "whole")
    assert splits.view == View(PlainText(("a",)), PlainText(("b",)))
