import pytest

from formwright.core.errors import IllegalInput
from formwright.tasks.from_tables import Found, find_rows, text_task
from formwright.tasks.tables import Table

TRAIN = [("good film", "pos"), ("bad film", "neg"), ("fine film", "pos")] * 10


def table(name: str, rows: list[tuple[str, str]]) -> Table:
    different = tuple((f"{text} {place}", label) for place, (text, label) in enumerate(rows))
    return Table(name, different, tuple(range(1, len(rows) + 1)))


def sizes(found: Found) -> tuple[int, ...]:
    splits = found.splits
    return len(splits.train), len(splits.validation), len(splits.test) if splits.test is not None else 0


@pytest.mark.parametrize(
    ("parts", "expected", "division"),
    [
        ({}, (24, 3, 3), "all 30 rows, divided 80/10/10 by seed 0"),
        ({"validation": 10}, (30, 5, 5), "the validation set of 10 rows, halved by seed 0 into validation and test"),
        ({"test": 7}, (27, 3, 7), "the training set of 30 rows, divided 90/10 by seed 0 into train and validation"),
        ({"validation": 4, "test": 7}, (30, 4, 7), "train, validation and test as they came"),
    ],
)
def test_what_is_missing_is_divided_off(parts: dict[str, int], expected: tuple[int, ...], division: str) -> None:
    tables = {name: table(name, TRAIN[:size]) for name, size in {"train": 30, **parts}.items()}
    found = find_rows(tables, None, official_dev=False)
    assert sizes(found) == expected
    assert found.splits.division.startswith(division)
    assert ("stratified" in found.splits.division) == (len(parts) < 2)  # where rows were divided here


def test_a_validation_set_may_be_kept_whole() -> None:
    tables = {"train": table("train", TRAIN), "validation": table("validation", TRAIN[:10])}
    found = find_rows(tables, None, official_dev=True)
    assert found.splits.test is None
    assert sizes(found) == (30, 10, 0)
    tables["test"] = table("test", TRAIN[:7])
    assert sizes(find_rows(tables, None, official_dev=True)) == (30, 10, 7)


def test_there_must_be_a_validation_set_to_keep_whole() -> None:
    with pytest.raises(IllegalInput, match="train comes without a validation set"):
        find_rows({"train": table("train", TRAIN)}, None, official_dev=True)


def test_classes_are_those_of_training() -> None:
    tables = {"train": table("train", TRAIN), "validation": table("valid", [("odd film", "odd")])}
    with pytest.raises(IllegalInput, match="valid, line 1: label 'odd', which is not among those of training"):
        find_rows(tables, None, official_dev=True)


@pytest.mark.parametrize(
    ("labels", "kind", "metrics"),
    [
        (("a", "b"), "sequence-classification", ("accuracy", "f1")),
        (("a", "b", "c"), "sequence-classification", ("accuracy",)),
        (("0.5", "1.5"), "regression", ("pearson", "spearman")),
    ],
)
def test_metrics_follow_from_the_labels(labels: tuple[str, ...], kind: str, metrics: tuple[str, ...]) -> None:
    rows = [("text", label) for label in labels * 10]
    found = find_rows({"train": table("train", rows), "validation": table("valid", rows)}, None, official_dev=True)
    task = text_task("mine", lambda: found.splits, found, "about")
    assert (task.kind, task.metrics, task.metric) == (kind, metrics, metrics[0])
    assert task.labels == (() if kind == "regression" else labels)
    assert task.chance == (0.0 if kind == "regression" else 1 / len(labels))


def test_chance_is_what_the_commonest_class_of_training_reaches() -> None:
    tables = {"train": table("train", TRAIN), "validation": table("valid", [("x", "neg")] * 3 + [("y", "pos")])}
    found = find_rows(tables, None, official_dev=True)
    assert text_task("mine", lambda: found.splits, found, "").chance == 0.25


def test_the_set_that_is_too_small_to_be_divided_is_named() -> None:
    tables = {"train": table("train", TRAIN), "validation": table("valid", TRAIN[:1])}
    with pytest.raises(IllegalInput, match="valid has 1 different texts, too few to be divided 1/1"):
        find_rows(tables, None, official_dev=False)


def test_texts_that_are_all_empty_are_refused() -> None:
    empty = Table("train", tuple((" " * place, str(place % 2)) for place in range(30)), tuple(range(1, 31)))
    with pytest.raises(IllegalInput, match="all texts of train are empty; name another column of text"):
        find_rows({"train": empty}, None, official_dev=False)
