"""`formwright train --distil-from`: what it learns from a teacher, and the teachers that are refused."""

from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.training import on_table, table
from tests.pipeline.compressions import bert, tokeniser

from formwright.arch.heads import HeadSpec

pytestmark = pytest.mark.slow
LABELS = HeadSpec("sequence-classification", 2)
STEPS = ("--steps", 3, "--save-every", 1, "--json")


def on(folder: Path) -> tuple[object, ...]:
    return (*on_table(table(folder)), *STEPS)


@pytest.fixture
def teacher(tmp_path: Path) -> Path:
    return bert(tmp_path, "teacher", LABELS, labels=("no", "yes"))


def test_a_teacher_changes_what_is_learned(run: Run, tmp_path: Path, teacher: Path) -> None:
    student = bert(tmp_path, "student")
    losses = {}
    for name, options in {
        "alone": (),
        "both": ("--distil-from", teacher),
        "labels": ("--distil-from", teacher, "--set", "distillation.labels=1", "--set", "distillation.hidden=0"),
    }.items():
        done = run("train", student, *on(tmp_path), *options, "--out", tmp_path / name).printed()
        losses[name] = done.data["losses"]
        assert (tmp_path / name / "model" / "config.json").is_file()
    assert losses["labels"] == pytest.approx(losses["alone"])
    assert losses["both"] != pytest.approx(losses["alone"])


def test_the_same_run_goes_on_and_another_teacher_is_another_run(run: Run, tmp_path: Path, teacher: Path) -> None:
    line = ("train", bert(tmp_path, "student"), *on(tmp_path), "--distil-from", teacher, "--judge-every", 2)
    first, again = (run(*line, "--out", tmp_path / "out").data["losses"] for _ in range(2))
    assert first == again
    run(*line, "--set", "distillation.hidden=0.5", "--out", tmp_path / "out").refused("train.distillation.hidden")


def test_teachers_that_cannot_teach_are_refused(run: Run, tmp_path: Path, teacher: Path) -> None:
    student = bert(tmp_path, "student")
    many = bert(tmp_path, "many", HeadSpec("sequence-classification", 3), labels=("a", "b", "c"))
    named = bert(tmp_path, "named", LABELS, labels=("bad", "good"))
    short = bert(tmp_path, "short", LABELS, labels=("no", "yes"), tokenizer=tokeniser(60).tokenizer)
    spans = bert(tmp_path, "spans", HeadSpec("span-extraction", 2))
    for folder, why in (
        (tmp_path / "nowhere", "there is no folder"),
        (student, "fine-tune it first"),
        (many, "it answers with 3 labels, the task has 2"),
        (named, "its labels are bad, good, those of the task no, yes"),
        (spans, "its head is for span-extraction"),
        (short, "the tokeniser in"),
    ):
        run("train", student, *on(tmp_path), "--distil-from", folder, "--out", tmp_path / "out").refused(why)
    assert not (tmp_path / "out").exists()
    run("train", student, *on(tmp_path), "--set", "distillation.labels=0.3").refused("teacher")
