import pytest

from formwright.core.errors import IllegalInput, UnknownName
from formwright.tasks.kind import kind_named
from formwright.tasks.labels import (
    Labelling,
    as_number,
    gathered,
    label_columns,
    labels_in,
    learn_labels,
    separator_of,
)
from formwright.tasks.rows import TextRows
from formwright.tasks.tables import Table


def table(*labels: str) -> Table:
    rows = tuple((f"text {row}", label) for row, label in enumerate(labels))
    return Table("file.csv", rows, tuple(range(2, len(rows) + 2)))


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (("b", "a", "b "), ("a", "b")),
        (("10", "9", "9"), ("9", "10")),
        (("1.0", "0.0", "1.0"), ("0.0", "1.0")),
        (("0.5", "x", "x"), ("0.5", "x")),
        (("1_0", "2", "2"), ("1_0", "2")),
    ],
)
def test_classes_are_sorted(labels: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert learn_labels(table(*labels)) == Labelling("sequence-classification", names)


@pytest.mark.parametrize("labels", [("0.5", "1"), ("0", "0.0", "-2.5e-1")])
def test_numbers_with_fractions_are_scores(labels: tuple[str, ...]) -> None:
    found = learn_labels(table(*labels))
    assert found.kind == "regression"
    assert found.rows(table(*labels)).labels == tuple(float(label) for label in labels)


def test_labels_become_the_places_of_their_names() -> None:
    found = learn_labels(table("yes", "no")).rows(table("no", " yes", "yes"))
    assert found == TextRows((("text 0",), ("text 1",), ("text 2",)), (0, 1, 1))
    labelling = Labelling("sequence-classification", ("negative", "positive"), written=("0", "1"))
    assert labelling.rows(table("1", "0")).labels == (1, 0)
    with pytest.raises(IllegalInput, match=r"line 2: label 'positive'.* Expected one of: 0, 1"):
        labelling.rows(table("positive"))


def test_labels_unseen_in_training_are_told_with_line_and_nearest() -> None:
    labelling = learn_labels(table("entailment", "neutral"))
    with pytest.raises(IllegalInput) as error:
        labelling.rows(table("neutral", "neutrall", "", "entailment"))
    assert "file.csv has 2 faults" in str(error.value)
    assert "line 3: label 'neutrall', which is not among those of training. Nearest: 'neutral'." in str(error.value)
    assert "line 4: label ''" in str(error.value)


@pytest.mark.parametrize("score", ["high", "nan", "inf", "-1", "5.1", ""])
def test_scores_are_finite_and_within_their_bounds(score: str) -> None:
    labelling = Labelling("regression", within=(0.0, 5.0))
    with pytest.raises(IllegalInput, match=f"line 3: score '{score}'; expected a finite number from 0 to 5"):
        labelling.rows(table("2.5", score))


@pytest.mark.parametrize("score", ["nan", "-inf", "1e30"])
def test_own_scores_are_finite(score: str) -> None:
    labels = table("0.5", score)
    with pytest.raises(IllegalInput, match=f"line 3: score '{score}'; expected a finite number of at most"):
        learn_labels(labels).rows(labels)


@pytest.mark.parametrize(
    ("labels", "kind", "reason"),
    [
        (("1", "2"), "classification", "whole numbers"),
        (("1", "0", "nan", "1"), "classification", "whole numbers"),
        (("0.5", "2"), "regression", "fraction"),
        (("good", "2"), "classification", "'good'"),
        (("good|fast", "bad"), "classification", "'good|fast'"),
        (('["good", "fast"]', "[]", '["bad"]'), "multi-label", "lists"),
    ],
)
def test_the_kind_is_guessed_with_a_reason(labels: tuple[str, ...], kind: str, reason: str) -> None:
    found = learn_labels(table(*labels))
    assert found.kind == kind_named(kind).name
    assert f"guessed as {kind}" in found.guess
    assert reason in found.guess
    assert "--task-kind" in found.guess
    named = learn_labels(table(*labels), found.kind)
    assert (named, named.guess) == (found, "")


def test_several_labels_become_ones_among_noughts() -> None:
    cells = table("tyre|rust", "", " rust ", "brake | tyre")
    found = learn_labels(cells, "multi-label-classification")
    assert (found.names, found.separator) == (("brake", "rust", "tyre"), "|")
    assert found.rows(cells).labels == ((0, 1, 1), (0, 0, 0), (0, 1, 0), (1, 0, 1))
    with pytest.raises(IllegalInput, match=r"line 2: label 'rusty'.* Nearest: 'rust'"):
        found.rows(table("brake|rusty"))
    found = learn_labels(table('["b"]', "[]"), columns=("b", "a"))
    assert (found.kind, found.names) == ("multi-label-classification", ("b", "a"))
    with pytest.raises(IllegalInput, match="2 label columns"):
        learn_labels(table('["b"]', "[]"), "regression", ("b", "a"))


MULTI, MANY = "multi-label-classification", tuple(map(str, range(30)))


@pytest.mark.parametrize(
    ("labels", "kind", "told"),
    [
        (("a", " ", "b"), None, "line 3: an empty label"),
        (("a", "a"), None, r"all rows of file\.csv have the label 'a'"),
        (MANY, None, "30 labels for 30 rows; name another column.*--task-kind regression"),
        (("0.5", "0.50"), None, r"all rows of file\.csv have the score 0\.5; expected different ones"),
        (("a", ""), MULTI, "at least two"),
        (MANY, MULTI, "30 labels"),
    ],
)
def test_columns_that_are_no_labels_are_refused(labels, kind, told: str) -> None:
    with pytest.raises(IllegalInput, match=told):
        learn_labels(table(*labels), kind)
    assert learn_labels(table(*MANY), "regression").kind == "regression"


def test_kinds_are_named_and_override_the_guess() -> None:
    assert learn_labels(table("1", "2"), "regression").kind == "regression"
    assert learn_labels(table("0.5", "1.5"), "sequence-classification").names == ("0.5", "1.5")
    labelling = learn_labels(table("a", "b"), "regression")  # two labels, not one score
    assert labelling.kind == "regression"
    assert (kind_named(""), kind_named("regression").name) == (None, "regression")
    with pytest.raises(UnknownName, match="multi-label"):
        kind_named("multilabel")
    assert [as_number(text) for text in ("1", "-2.5", "1e3", "x", "", "1_000")] == [1.0, -2.5, 1000.0, None, None, None]


@pytest.mark.parametrize(
    ("cells", "separator"),
    [
        (("a|b;c", "d"), "|"),
        (("a;b, c", "d"), ";"),
        (("a,b", ""), ","),
        (("a", "b"), ","),
        (('["x|y", "z"]', "a;b"), ";"),
    ],
)
def test_the_first_separator_that_occurs_separates_all_cells(cells: tuple[str, ...], separator: str) -> None:
    assert separator_of(cells) == separator


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        ("rust| brake |rust|", ("rust", "brake")),
        ("", ()),
        ("[]", ()),
        ('["a, b", "c", 3]', ("a, b", "c", "3")),
        ("['a', 'b c']", ("a", "b c")),  # as pandas writes a list
        ("[" * 5000 + "]", ("[" * 4999,)),  # too deep for JSON: one strange name, and no crash
    ],
)
def test_a_cell_holds_labels(cell: str, labels: tuple[str, ...]) -> None:
    assert labels_in(cell, "|") == labels


def test_columns_of_flags_become_a_column_of_lists() -> None:
    assert label_columns(" a, b,,c ") == ("a", "b", "c")
    table = Table("file.csv", (("x", "1", "0"), ("y", "TRUE", "1.0"), ("z", "0", "false")), (2, 3, 4))
    assert gathered(table, ("a", "b, c")).rows == (("x", '["a"]'), ("y", '["a", "b, c"]'), ("z", "[]"))
    with pytest.raises(IllegalInput, match=r"file\.csv, line 3: '2' in column 'b'"):
        gathered(Table("file.csv", (("x", "1", "0"), ("y", "1", "2")), (2, 3)), ("a", "b"))
    with pytest.raises(IllegalInput, match="twice"):
        gathered(Table("file.csv", (("x", "1", "0"),), (2,)), ("a", "a"))
