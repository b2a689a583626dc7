"""`--length`: by default taken from the data, a number in every record, and what it cuts is said."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.training import card_file
from tests.pipeline.cases import here, quick, search_of

from formwright.pipeline.study_place import find
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice

ROWS = 100


def long_table(folder: Path, long: int, words: int = 60) -> Path:
    """Write a hundred rows, the first so many of which are long."""
    lines = ["words,b"]
    for row in range(ROWS):
        number = words if row < long else 6
        lines.append(f"{' '.join(['ab'] * number)} {row},{'yes' if row % 2 else 'no'}")
    path = folder / "long.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def on(path: Path) -> tuple[object, ...]:
    return ("--task", path, "--text", "words", "--label", "b", "--batch", 8)


def test_a_training_that_cuts_many_rows_says_so_with_the_right_share(run: Run, tmp_path: Path) -> None:
    task = on(long_table(tmp_path, ROWS, words=40))
    done = run(
        "train", card_file(tmp_path), *task, "--length", 16, "--steps", 2, "--out", tmp_path / "out", "--json"
    ).printed()
    assert done.data["cut"] == 1.0
    assert done.err.startswith("warning: 100.0% of the training rows")
    assert "16 tokens" in done.err


def test_a_training_takes_its_length_from_the_data_and_records_the_number(run: Run, tmp_path: Path) -> None:
    task = on(long_table(tmp_path, 2, words=25))
    line = ("train", card_file(tmp_path), *task, "--steps", 2, "--out", tmp_path / "out", "--json")
    done = run(*line).printed()
    assert done.data["length"] == 16  # covers 98 %
    assert 0 < done.data["cut"] <= 2 / (0.8 * ROWS)
    assert "--length 32" in done.err  # which covers all
    assert not done.err.startswith("warning")
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["pipeline"]["stages"]["train"]["training"]["length"] == 16
    again = run(*line).printed()  # the same command finds its own run
    assert again.data == done.data
    assert run(*line, "--length", 16).code == 0  # as does one that says the number
    assert run(*line, "--length", 24).code == 2


@pytest.mark.usefixtures("one_process")
def test_a_search_takes_its_length_from_the_data_before_it_writes_its_configuration(run: Run, tmp_path: Path) -> None:
    task = on(long_table(tmp_path, ROWS, words=150))
    steps = ("--trials", 1, "--steps", 1, "--final-steps", 1, "--no-baseline")
    done = run("search", "flexibert-nano", *task, *steps, "--out", tmp_path / "out").printed()
    with find(str(tmp_path / "out")).open() as opened:
        assert opened.search.training.length == 128  # the design reads no more
    assert "warning: 100.0% of the training rows" in done.err


@pytest.mark.parametrize(("asked", "read"), [(100_000, 128), (16, 16)])
def test_a_search_records_no_length_that_its_designs_cannot_read(asked: int, read: int, tmp_path: Path) -> None:
    task = TaskChoice(str(long_table(tmp_path, 2)), text=("words",), label="b")
    made = quick(task=task, training=TrainingChoice(steps=5, length=asked))
    assert search_of(made).resolved(here(made)).training.length == read
