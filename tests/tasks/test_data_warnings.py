"""What looks wrong with rows is counted, once for each kind of thing."""

import pytest

from formwright.tasks.data_warnings import DataWarning, class_counts, data_warnings
from formwright.tasks.rows import Label, Splits, TextRows

NAMES = ("no", "yes")


def rows(*pairs: tuple[str, Label], source: str = "file.csv") -> TextRows:
    return TextRows(tuple((text,) for text, _ in pairs), tuple(label for _, label in pairs), source=source)


PLENTY = rows(*((f"text {number}", number % 2) for number in range(20)))
HELD = rows(("other", 0), ("another", 1))


def look(splits: Splits[TextRows], names: tuple[str, ...] = NAMES) -> dict[str, DataWarning]:
    found = data_warnings(splits, names)
    assert len({warning.kind for warning in found}) == len(found)
    assert all(f"{warning.count:,}" in warning.message for warning in found if warning.kind != "shared-rows")
    return {warning.kind: warning for warning in found}


def test_good_rows_and_generated_rows_bring_no_warning() -> None:
    assert look(Splits(PLENTY, HELD, rows(("third", 1)))) == {}
    doubtful = rows(("", 0), ("", 1), source="")
    assert look(Splits(doubtful, doubtful, doubtful)) == {}


def test_rows_that_splits_share_are_counted() -> None:
    validation, test = rows(("text 3", 1), ("new", 0)), rows(("text 4", 0), ("text 5", 1), ("new", 0))
    found = look(Splits(PLENTY, validation, test))["shared-rows"]
    assert found.count == 4
    for words in ("1 of 2 validation rows", "2 of 3 test rows", "also in train", "also in validation"):
        assert words in found.message


def test_the_same_text_with_another_label_is_a_contradiction() -> None:
    train = rows(*zip((text for (text,) in PLENTY.texts), PLENTY.labels, strict=True), ("text 1", 0), ("text 1", 1))
    found = look(Splits(train, rows(("text 2", 1)), None))
    assert found["contradictory-labels"].count == 5  # three times "text 1", twice "text 2"
    assert "2 texts" in found["contradictory-labels"].message


def test_empty_texts_are_counted_even_in_pairs() -> None:
    pairs = TextRows((("a", "b"), ("a", " "), ("", "")), (0, 1, 0), source="file.csv")
    assert look(Splits(pairs, HELD, None))["empty-texts"].count == 2


@pytest.mark.parametrize("several", [False, True])
def test_classes_with_few_rows_are_named(several: bool) -> None:
    labels: list[Label] = [0] * 9 + [1] * 4 + [2] * 2
    if several:
        labels = [tuple(int(place == label) for place in range(4)) for label in labels if isinstance(label, int)]
    train = rows(*((f"text {number}", label) for number, label in enumerate(labels)))
    found = look(Splits(train, rows(("held out", train.labels[9])), None), ("many", "five", "two", "none at all"))
    assert found["rare-classes"].count == 2
    assert "'two' (2)" in found["rare-classes"].message
    assert "'none at all' (0)" in found["rare-classes"].message
    assert "five" not in found["rare-classes"].message


@pytest.mark.parametrize("name", ["NaN", "nan", "None", "null", ""])
def test_a_missing_value_is_no_class(name: str) -> None:
    found = look(Splits(PLENTY, HELD, None), ("no", name))["missing-value-class"]
    assert found.count == 11
    assert repr(name) in found.message


def test_many_rare_classes_are_not_all_named() -> None:
    train = rows(*((f"text {number}", number) for number in range(30)))
    found = look(Splits(train, HELD, None), tuple(f"class {number}" for number in range(30)))["rare-classes"]
    assert (found.count, "25 more" in found.message) == (30, True)


def test_rows_of_several_labels_count_for_each() -> None:
    assert class_counts([rows(("a", (1, 0, 1)), ("b", (0, 0, 1)))], 3) == {0: 1, 2: 2}
