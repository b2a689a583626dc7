import gzip
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import formwright
from formwright.core.errors import IllegalInput
from formwright.tasks.rows import TextRows
from formwright.tasks.tables import Table
from formwright.tasks.test_split import open_test
from formwright.tasks.user_tables import Found, find_rows, own_task, text_task

SOURCE = str(Path(formwright.__file__).parents[1])
ROWS = [(f"sentence number {row}", ("no", "yes")[row % 2]) for row in range(20)]
OTHER_PROCESS = """
import pickle, sys
task = pickle.loads(sys.stdin.buffer.read())
print(task.search_view().train.digest, task.search_view().validation.digest)
"""


def as_text(name: str, rows: list[tuple[str, str]], columns: tuple[str, str] = ("sentence", "label")) -> str:
    if ".jsonl" in name:
        return "\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in rows)
    between = "\t" if ".tsv" in name else ","
    return "\n".join(between.join(row) for row in [columns, *rows]) + "\n"


def write(path: Path, rows: list[tuple[str, str]] = ROWS, columns: tuple[str, str] = ("sentence", "label")) -> Path:
    content = as_text(path.name, rows, columns).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.csv.gz", "a.jsonl.gz"])
def test_a_single_file_is_divided_the_same_way_in_every_format(tmp_path: Path, name: str) -> None:
    task = own_task(write(tmp_path / name))
    view = task.search_view()
    assert (len(view.train), len(view.validation), len(open_test(task))) == (16, 2, 2)
    assert (task.labels, task.kind) == (("no", "yes"), "sequence-classification")
    assert task.division.startswith("all 20 rows, divided 80/10/10 by seed 0")
    assert task.about == f"column label from sentence of {name}"
    (tmp_path / "plain").mkdir()
    assert own_task(write(tmp_path / "plain" / "b.csv")).search_view() == view


def test_every_split_knows_its_rows_in_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv")
    task = own_task(path)
    origins = task.origins
    assert {origin.source for origin in origins.values()} == {str(path)}
    assert sorted(row for origin in origins.values() for row in origin.rows) == list(range(20))
    parts = {"train": task.search_view().train, "validation": task.search_view().validation, "test": open_test(task)}
    for name, rows in parts.items():
        assert rows.texts == tuple((ROWS[number][0],) for number in origins[name].rows)
    (tmp_path / "folder").mkdir()
    write(tmp_path / "folder" / "train.csv")
    held = write(tmp_path / "folder" / "validation.csv", ROWS[10:])
    origins = own_task(tmp_path / "folder").origins
    assert origins["train"].rows == tuple(range(20))
    assert sorted((*origins["validation"].rows, *origins["test"].rows)) == list(range(10))
    assert origins["test"].source == str(held)


def test_semicolons_and_json_arrays_hold_the_same_task(tmp_path: Path) -> None:
    commas = own_task(write(tmp_path / "a.csv"))
    (tmp_path / "b.csv").write_text("\ufeffsentence;label\r\n" + "".join(f"{text};{label}\r\n" for text, label in ROWS))
    objects = [{"sentence": text, "label": label} for text, label in ROWS]
    (tmp_path / "c.json").write_text(json.dumps(objects), encoding="utf-8-sig")
    for name in ("b.csv", "c.json"):
        assert own_task(tmp_path / name).search_view() == commas.search_view()


DEFECTS = [
    (f"bike {row}", [name for place, name in enumerate(("rust", "brake", "tyre")) if row >> place & 1])
    for row in range(40)
]


def test_several_labels_may_stand_in_a_cell_or_in_columns(tmp_path: Path) -> None:
    names = ("brake", "rust", "tyre")
    cells = "\n".join(f"{text};{'|'.join(labels)}" for text, labels in DEFECTS)
    (tmp_path / "cells.csv").write_text(f"sentence;label\n{cells}\n")
    flags = "\n".join(f"{text},{','.join(str(int(name in labels)) for name in names)}" for text, labels in DEFECTS)
    (tmp_path / "columns.csv").write_text(f"sentence,{','.join(names)}\n{flags}\n")
    objects = [{"sentence": text, "label": labels} for text, labels in DEFECTS]
    (tmp_path / "lists.json").write_text(json.dumps(objects))
    named = own_task(tmp_path / "cells.csv", kind="multi-label-classification")
    assert (named.kind, named.metric, named.labels) == ("multi-label-classification", "micro-f1", names)
    assert named.guess == ""
    for other in (own_task(tmp_path / "columns.csv", label="brake, rust,tyre"), own_task(tmp_path / "lists.json")):
        assert other.search_view() == named.search_view()
        assert (other.labels, other.metrics, other.chance) == (names, named.metrics, named.chance)
        assert "multi-label" in other.guess
    view, held = named.search_view(), open_test(named)
    assert [len(part) for part in (view.train, view.validation, held)] == [32, 4, 4]
    for place in range(3):  # stratified: each label is half of the rows, give or take the rounding
        assert abs(sum(label[place] for label in view.train.labels) - 16) <= 2
        assert sum(label[place] for label in view.validation.labels) in (1, 2, 3)


def test_chance_of_several_labels_is_that_of_the_best_constant_answer(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("sentence;label\n" + "".join(f"text {row};{'a' if row % 4 else 'a|b'}\n" for row in range(80)))
    task = own_task(path, kind="multi-label-classification")
    held = list(task.search_view().validation.labels)
    assert task.chance == pytest.approx(2 * len(held) / (2 * len(held) + sum(label[1] for label in held)))


def test_warnings_are_about_the_rows_of_a_file(tmp_path: Path) -> None:
    write(tmp_path / "train.csv")
    write(tmp_path / "test.csv", [("sentence number 2", "yes"), ("new", "NaN")])
    with pytest.raises(IllegalInput, match="NaN"):
        own_task(tmp_path)  # a class that training lacks
    write(tmp_path / "train.csv", [*ROWS, ("strange", "NaN")])
    found = {warning.kind: warning.count for warning in own_task(tmp_path).warnings}
    assert found == {"shared-rows": 1, "contradictory-labels": 2, "rare-classes": 1, "missing-value-class": 2}


def test_columns_are_named_and_there_may_be_two_of_text(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("a,b,score\n" + "".join(f"first {row},second {row},{row / 4}\n" for row in range(20)))
    task = own_task(path, text=("b", "a"), label="score")
    assert (task.kind, task.metric, task.labels) == ("regression", "pearson", ())
    texts, score = task.search_view().train.texts[0], task.search_view().train.labels[0]
    number = texts[0].split()[1]
    assert (texts, score) == ((f"second {number}", f"first {number}"), int(number) / 4)
    assert own_task(path, ("a",), "score", kind="sequence-classification").kind == "sequence-classification"


def test_a_folder_has_a_file_for_each_split(tmp_path: Path) -> None:
    write(tmp_path / "train.csv")
    write(tmp_path / "dev.jsonl.gz", ROWS[:6])
    write(tmp_path / "test.tsv", ROWS[6:9])
    (tmp_path / "README.md").write_text("train.csv is for training")
    task = own_task(tmp_path)
    assert (len(task.search_view().train), len(task.search_view().validation)) == (20, 6)
    assert open_test(task) == TextRows(tuple((text,) for text, _ in ROWS[6:9]), (0, 1, 0))


def test_a_test_file_without_labels_is_no_test(tmp_path: Path) -> None:
    write(tmp_path / "train.csv")
    write(tmp_path / "validation.csv", ROWS[:6])
    write(tmp_path / "test.csv", columns=("sentence", "id"))
    task = own_task(tmp_path)
    assert (len(task.search_view().validation), len(open_test(task))) == (3, 3)
    assert task.division.startswith("the validation set of 6 rows, halved")
    whole = own_task(tmp_path, official_dev=True)
    assert len(whole.search_view().validation) == 6
    with pytest.raises(IllegalInput, match="has no test rows: validation is the validation set of 6 rows, whole"):
        open_test(whole)


def test_tasks_travel_to_another_process_and_read_their_files_there(tmp_path: Path) -> None:
    task = own_task(write(tmp_path / "a.csv"))
    travelling = pickle.dumps(task)
    assert b"sentence number 3" not in travelling
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS],
        input=travelling,
        env={**os.environ, "PYTHONPATH": SOURCE},
        cwd=os.path.dirname(SOURCE),
        capture_output=True,
        check=True,
    )
    view = task.search_view()
    assert done.stdout.decode().split() == [view.train.digest, view.validation.digest]


def test_a_path_stays_what_it_was_when_the_folder_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.csv")
    monkeypatch.chdir(tmp_path)
    task = own_task("a.csv")
    monkeypatch.chdir("/")
    assert task.name == "a.csv"
    assert pickle.loads(pickle.dumps(task)).search_view() == task.search_view()


def test_changed_files_are_noticed_elsewhere(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv")
    copy = pickle.loads(pickle.dumps(own_task(path)))
    write(path, [*ROWS, ("a new sentence", "a new label")])
    with pytest.raises(IllegalInput, match="have changed since"):
        copy.search_view()


def test_files_are_read_once_and_nothing_is_left(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv")
    task = own_task(path)
    path.unlink()
    assert len(task.search_view().train) == 16
    assert not list(tmp_path.iterdir())


ODD = "one or two columns of text and another of labels"


@pytest.mark.parametrize(
    ("text", "label", "told"),
    [
        (("a", "b", "c"), "label", ODD),
        (("a",), "a", ODD),
        (("a", "a"), "b", ODD),
        (("sentense",), "label", r"a\.csv, line 1: no column called 'sentense'. Nearest: 'sentence'"),
    ],
)
def test_columns_must_make_sense(tmp_path: Path, text: tuple[str, ...], label: str, told: str) -> None:
    with pytest.raises(IllegalInput, match=told):
        own_task(write(tmp_path / "a.csv"), text, label)


@pytest.mark.parametrize(
    ("files", "path", "told"),
    [
        ({}, "", r"no training rows in .*: looked for a file called train .*\.csv"),
        ({}, "a.csv", r"cannot read .*a\.csv: No such file"),
        ({}, "a.txt", r"a\.txt is neither a folder nor a file.* \.csv"),
        ({}, "a" * 300 + ".csv", "cannot read .*: File name too long"),
        (
            {"train.csv": ROWS, "dev.csv": ROWS, "valid.tsv": ROWS},
            "",
            r"has dev\.csv, valid\.tsv; expected one of them",
        ),
        ({"train.csv/inner.csv": ROWS}, "", r"cannot read .*train\.csv: it is a folder"),
        ({"train.csv": ROWS, "test.csv": None}, "", r"test\.csv is empty; .* columns sentence, label"),
    ],
)
def test_folders_and_files_that_cannot_be_used_are_told(tmp_path: Path, files, path: str, told: str) -> None:
    for name, rows in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch() if rows is None else write(tmp_path / name, rows)
    with pytest.raises(IllegalInput, match=told):
        own_task(tmp_path / path)


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


def test_validation_sets_are_kept_whole_where_there_are_any() -> None:
    tables = {"train": table("train", TRAIN), "validation": table("validation", TRAIN[:10])}
    found = find_rows(tables, None, official_dev=True)
    assert found.splits.test is None
    assert sizes(found) == (30, 10, 0)
    tables["test"] = table("test", TRAIN[:7])
    assert sizes(find_rows(tables, None, official_dev=True)) == (30, 10, 7)
    with pytest.raises(IllegalInput, match="train comes without a validation set"):
        find_rows({"train": table("train", TRAIN)}, None, official_dev=True)


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


def test_tables_that_make_no_task_are_refused() -> None:
    tables = {"train": table("train", TRAIN), "validation": table("valid", [("odd film", "odd")])}
    with pytest.raises(IllegalInput, match="valid, line 1: label 'odd', which is not among those of training"):
        find_rows(tables, None, official_dev=True)
    tables = {"train": table("train", TRAIN), "validation": table("valid", TRAIN[:1])}
    with pytest.raises(IllegalInput, match="valid has 1 different texts, too few to be divided 1/1"):
        find_rows(tables, None, official_dev=False)
    empty = Table("train", tuple((" " * place, str(place % 2)) for place in range(30)), tuple(range(1, 31)))
    with pytest.raises(IllegalInput, match="all texts of train are empty; name another column of text"):
        find_rows({"train": empty}, None, official_dev=False)
