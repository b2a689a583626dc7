import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.core.errors import IllegalInput
from formwright.tasks.divide import divide, hold_out
from formwright.tasks.rows import TextRows


def rows(*texts: str) -> TextRows:
    return TextRows(tuple((text,) for text in texts), tuple(range(len(texts))))


MANY = rows(*(f"text {row}" for row in range(1000)))


def test_parts_are_as_large_as_their_shares() -> None:
    assert [len(part) for part in divide(MANY, (80, 10, 10), "file")] == [800, 100, 100]
    assert [len(part) for part in divide(MANY, (1, 1), "file")] == [500, 500]


def test_the_division_is_pinned() -> None:
    first, second = divide(rows(*"abcdefghij"), (1, 1), "file")
    assert (first.labels, second.labels) == ((1, 4, 6, 7, 8), (0, 2, 3, 5, 9))
    assert divide(rows(*"abcdefghij"), (1, 1), "file") == [first, second]


@given(st.lists(st.sampled_from("abcdefghijklmnopqrst"), min_size=1, max_size=60))
def test_no_row_is_lost_and_equal_texts_stay_together(texts: list[str]) -> None:
    try:
        parts = divide(rows(*texts), (1, 1), "file")
    except IllegalInput:
        # one text fills a half on its own
        assert max(texts.count(text) for text in texts) >= len(texts) / 2
        return
    labels = [label for part in parts for label in part.labels]
    assert sorted(labels) == list(range(len(texts)))
    assert not set(parts[0].texts) & set(parts[1].texts)
    assert all(list(part.labels) == sorted(part.labels) for part in parts)


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(IllegalInput, match=r"own\.csv has 3 different texts, too few to be divided 80/10/10"):
        divide(rows("a", "b", "c"), (80, 10, 10), "own.csv")


def test_a_set_is_halved_or_kept_whole() -> None:
    halved = hold_out(rows("x"), MANY, "official dev set", "file", whole=False)
    assert halved.test is not None
    assert (len(halved.validation), len(halved.test)) == (500, 500)
    assert halved.division == "the official dev set of 1,000 rows, halved by seed 0 into validation and test"
    whole = hold_out(rows("x"), MANY, "official dev set", "file", whole=True)
    assert (whole.validation, whole.test) == (MANY, None)
    assert whole.division == "the official dev set of 1,000 rows, whole"


def test_one_text_that_fills_a_part_is_told() -> None:
    with pytest.raises(IllegalInput, match=r"has 11 different texts \(90 of 100 rows have the same text\), too few"):
        divide(rows(*"abcdefghij", *["x"] * 90), (80, 10, 10), "own.csv")
