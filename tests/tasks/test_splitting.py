from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from formwright.core.errors import IllegalInput
from formwright.tasks.rows import TextRows
from formwright.tasks.splitting import divide, divide_by_class, hold_out


def rows(*texts: str) -> TextRows:
    return TextRows(tuple((text,) for text in texts), tuple(range(len(texts))))


MANY = rows(*(f"text {row}" for row in range(1000)))


@pytest.mark.parametrize("deal", [divide, divide_by_class])
def test_parts_know_the_places_of_their_rows_in_the_file(deal: Any) -> None:
    texts = tuple((f"text {row}",) for row in range(40))
    whole = TextRows(texts, tuple(row % 2 for row in range(40)), numbers=tuple(range(100, 140)), source="mine.csv")
    parts = deal(whole, (1, 1), "file")
    inner = deal(parts[0], (1, 1), "file")  # a part that is divided again
    for part in (*parts, *inner):
        assert [f"text {number - 100}" for number in part.numbers] == [text for (text,) in part.texts]
        assert part.source == "mine.csv"


@given(st.lists(st.sampled_from("abcdefghijklmnopqrst"), min_size=1, max_size=60))
def test_no_row_is_lost_and_equal_texts_stay_together(texts: list[str]) -> None:
    try:
        parts = divide(rows(*texts), (1, 1), "file")
    except IllegalInput:
        # one text fills a half on its own
        assert max(texts.count(text) for text in texts) >= len(texts) / 2
        return
    assert sorted(label for part in parts for label in part.labels) == list(range(len(texts)))
    assert not set(parts[0].texts) & set(parts[1].texts)
    assert all(list(part.labels) == sorted(part.labels) for part in parts)


def labelled(*labels: int) -> TextRows:
    return TextRows(tuple((f"text {row}",) for row in range(len(labels))), labels)


@given(st.lists(st.tuples(st.sampled_from("abcdefghijkl"), st.integers(0, 5)), min_size=1, max_size=60))
@example([*zip("aaabccddefgh", (0, 1, 3, 2, 1, 3, 1, 1, 2, 0, 0, 0), strict=True)])
@example([("a", 0)] * 50 + [(text, 1) for text in "bcdefgh"])
def test_a_division_by_class_keeps_equal_texts_together_and_can_be_learned(pairs: list[tuple[str, int]]) -> None:
    many = TextRows(tuple((text,) for text, _ in pairs), tuple(label for _, label in pairs))
    try:
        parts = divide_by_class(many, (80, 10, 10), "file")
    except IllegalInput:
        assert len({text for text, _ in pairs}) < 8
        return
    assert sorted(number for part in parts for number in part.numbers) == list(range(len(pairs)))
    for place, part in enumerate(parts):
        assert not set(part.texts) & {text for other in parts[place + 1 :] for text in other.texts}
        assert part.texts == tuple(many.texts[number] for number in part.numbers)


def test_classes_are_shared_out() -> None:
    uneven = labelled(*(0 if row % 20 else 1 for row in range(1000)))  # 950 and 50 rows
    parts = divide_by_class(uneven, (80, 10, 10), "file")
    assert [(part.labels.count(0), part.labels.count(1)) for part in parts] == [(760, 40), (95, 5), (95, 5)]
    plain = [part.labels.count(1) for part in divide(uneven, (80, 10, 10), "file")]
    assert plain != [40, 5, 5]  # chance alone does not do it
    first, second = divide_by_class(labelled(*[0, 1] * 5), (1, 1), "file")
    assert (first.numbers, second.numbers) == ((2, 4, 6, 7, 9), (0, 1, 3, 5, 8))
    labels = [*[0] * 60, *[1] * 40, 2, 3, 3]
    train, validation, test = divide_by_class(labelled(*labels), (80, 10, 10), "file")
    assert set(train.labels) == {0, 1, 2, 3}
    assert abs(len(validation) - 10) <= 1
    assert abs(len(test) - 10) <= 1
    assert [len(part) for part in divide_by_class(labelled(*range(20)), (80, 10, 10), "file")] == [16, 2, 2]


def test_parts_have_their_shares_and_never_move() -> None:
    assert [len(part) for part in divide(MANY, (80, 10, 10), "file")] == [800, 100, 100]
    assert [len(part) for part in divide(MANY, (1, 1), "file")] == [500, 500]
    first, second = divide(rows(*"abcdefghij"), (1, 1), "file")
    assert (first.labels, second.labels) == ((1, 4, 6, 7, 8), (0, 2, 3, 5, 9))
    assert divide(rows(*"abcdefghij"), (1, 1), "file") == [first, second]
    with pytest.raises(IllegalInput, match=r"own\.csv has 3 different texts, too few to be divided 80/10/10"):
        divide(rows("a", "b", "c"), (80, 10, 10), "own.csv")
    with pytest.raises(IllegalInput, match=r"has 11 different texts \(90 of 100 rows have the same one\), too few"):
        divide(rows(*"abcdefghij", *["x"] * 90), (80, 10, 10), "own.csv")


def test_a_set_is_halved_or_kept_whole() -> None:
    halved = hold_out(rows("x"), MANY, "official dev set", "file", whole=False)
    assert (len(halved.validation), len(halved.test)) == (500, 500)
    assert halved.division == "the official dev set of 1,000 rows, halved by seed 0 into validation and test"
    whole = hold_out(rows("x"), MANY, "official dev set", "file", whole=True)
    assert (whole.validation, whole.test) == (MANY, None)
    assert whole.division == "the official dev set of 1,000 rows, whole"
    labels = [number // 2 for number in range(20)] + [10] * 80  # ten classes of two rows
    held = TextRows(tuple((f"text {row}",) for row in range(100)), tuple(labels))
    found = hold_out(MANY, held, "set", "file", whole=False, by_class=True)
    for half in (found.validation, found.test):
        assert sorted(half.labels) == [*range(10), *[10] * 40]
