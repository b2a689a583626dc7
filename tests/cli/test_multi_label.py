"""A task whose rows have several labels, or none, from the table to a model that transformers loads."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.cli.compressing import line
from tests.cli.conftest import Run
from tests.cli.letters import LETTERS, SEVERAL, options, table
from tests.cli.studies import SPACE, facts
from tests.cli.training import QUICK, card_file
from tests.pipeline.compressions import bert

from formwright.arch.heads import HeadSpec
from formwright.nn.hf.imported import load_folder
from formwright.nn.hf.load import from_hf
from formwright.nn.task_model import TaskModel
from formwright.tasks import load_task
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.train.judge import judge
from formwright.train.prepare import prepare


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return table(tmp_path_factory.mktemp("rows"))


def scores_of(folder: Path, rows: Path) -> dict[str, float]:
    model, task = load_folder(folder), load_task(str(rows), text=("words",), label="letters", kind="multi-label")
    assert isinstance(model, TaskModel)
    prepared = prepare(task, model.transformer.card, 16, read_tokeniser(folder))
    return judge(model, prepared, prepared.validation)


def row_labels(label: tuple[int, ...]) -> list[str]:
    return [letter for letter, has in zip(LETTERS, label, strict=True) if has]


def is_multi_label(folder: Path) -> bool:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    imported = from_hf(folder)
    assert (imported.head, imported.labels) == (SEVERAL, LETTERS)
    return bool(config["problem_type"] == "multi_label_classification")


def test_a_model_is_trained_and_gives_several_labels(run: Run, tmp_path: Path, rows: Path) -> None:
    training = (*QUICK, "--steps", 150, "--learning-rate", "1e-2", "--dropout", 0, "--json")
    done = run("train", card_file(tmp_path), *options(rows), *training, "--out", tmp_path / "out")
    found, folder = done.data, tmp_path / "out" / "model"
    assert found["metrics"].keys() == {"micro-f1", "macro-f1", "subset-accuracy"}
    task = load_task(str(rows), text=("words",), label="letters", kind="multi-label")
    assert task.chance is not None
    assert found["metrics"]["micro-f1"] > task.chance + 0.2
    assert is_multi_label(folder)
    assert scores_of(folder, rows) == pytest.approx(found["metrics"])
    again = run("evaluate", folder, "--task", rows, "--json").data  # the folder says what its labels are
    assert (again["repeats"], again["metrics"]) == (True, pytest.approx(found["metrics"]))
    assert run("evaluate", folder, "--task", rows, "--task-kind", "classification").code == 2
    answered = run("predict", folder, rows, "--json").data["rows"]
    for row in answered:
        assert row["prediction"] == [letter for letter in LETTERS if row["probability"][letter] > 0.5]
    held = task.search_view().validation
    hits = [
        answered[number]["prediction"] == row_labels(label)
        for number, label in zip(held.numbers, held.labels, strict=True)
    ]
    assert sum(hits) / len(hits) == pytest.approx(found["metrics"]["subset-accuracy"])
    run("predict", folder, rows, "--out", tmp_path / "answered.csv")
    read = load_task(str(tmp_path / "answered.csv"), text=("words",), label="prediction")
    assert (read.kind, set(read.labels)) == (task.kind, set(LETTERS))


def test_warnings_about_the_rows_are_printed(run: Run, tmp_path: Path, rows: Path) -> None:
    doubtful = tmp_path / "doubtful.csv"
    doubtful.write_text(rows.read_text(encoding="utf-8") + "9 9 9 a;a\n9 9 9 a;b\n", encoding="utf-8")
    line = ("train", card_file(tmp_path), *options(doubtful), *QUICK, "--steps", 1, "--out", tmp_path / "out")
    warnings = [line for line in run(*line).err.splitlines() if line.startswith("warning")]
    assert len(warnings) == 1
    assert "2 rows contradict" in warnings[0]


@pytest.mark.slow
def test_the_pipeline_of_transformers_gives_several_labels(run: Run, tmp_path: Path, rows: Path) -> None:
    transformers = import_module("transformers")
    training = (*QUICK, "--steps", 150, "--learning-rate", "1e-2", "--dropout", 0)
    run("train", card_file(tmp_path), *options(rows), *training, "--out", tmp_path / "out")
    pipe = transformers.pipeline("text-classification", model=str(tmp_path / "out" / "model"))
    task = load_task(str(rows), text=("words",), label="letters", kind="multi-label").search_view().validation
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out" / "model")
    hits = 0
    for (text,), label in zip(task.texts, task.labels, strict=True):
        found = {entry["label"]: entry["score"] for entry in pipe(text, top_k=None)}
        scores = torch.sigmoid(model(**pipe.tokenizer(text, return_tensors="pt")).logits[0])
        assert [found[letter] for letter in LETTERS] == pytest.approx(scores.tolist(), abs=1e-5)
        hits += tuple(int(found[letter] > 0.5) for letter in LETTERS) == label
    assert hits / len(task) == pytest.approx(scores_of(tmp_path / "out" / "model", rows)["subset-accuracy"])


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_search_keeps_the_kind_and_the_warnings(tmp_path: Path, rows: Path) -> None:
    doubtful = tmp_path / "doubtful.csv"
    doubtful.write_text(rows.read_text(encoding="utf-8") + "9 9 9 a;a\n9 9 9 a;b\n", encoding="utf-8")
    short = ("--trials", 2, "--steps", 5, "--final-steps", 5, "--workers", 1, *QUICK)
    found = facts("search", SPACE, *options(doubtful), *short, "--out", tmp_path / "study")
    assert (found["config"]["task"]["kind"], found["config"]["objectives"]) == ("multi-label", ["micro-f1:max"])
    assert [warning["kind"] for warning in found["data_warnings"]] == ["contradictory-labels"]
    page = (tmp_path / "study" / "report.html").read_text(encoding="utf-8")
    assert "2 rows contradict" in page
    best = found["models"][0]
    assert best["test"].keys() == {"micro-f1", "macro-f1", "subset-accuracy"}
    assert is_multi_label(Path(best["path"]))
    assert facts("resume", tmp_path / "study", "--trials", 3)["config"]["task"]["kind"] == "multi-label"


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_model_is_compressed(tmp_path: Path, rows: Path) -> None:
    found = facts(*line(tmp_path, "--target", "macs=60%", task=options(rows)))
    teacher, small = found["models"]
    assert small["params"] < teacher["params"]
    assert small["test"].keys() == {"micro-f1", "macro-f1", "subset-accuracy"}
    assert is_multi_label(Path(small["path"]))


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [0, 1])
def test_a_student_learns_from_a_teacher_of_the_same_kind(run: Run, tmp_path: Path, rows: Path, hidden: int) -> None:
    teacher = bert(tmp_path, "teacher", SEVERAL, labels=LETTERS)
    train: tuple[Any, ...] = ("train", bert(tmp_path), *options(rows), *QUICK, "--steps", 3, "--json")
    distil = ("--distil-from", teacher, "--set", f"distillation.hidden={hidden}", "--out", tmp_path / "taught")
    assert run(*train, *distil).data["metrics"].keys() >= {"micro-f1"}
    chooses = bert(tmp_path, "chooses", HeadSpec("sequence-classification", 3), labels=LETTERS)
    run(*train, "--distil-from", chooses, "--out", tmp_path / "other").refused("multi-label-classification")


@pytest.mark.slow
@pytest.mark.long
def test_the_model_for_another_runtime_scores_the_same(run: Run, tmp_path: Path, rows: Path) -> None:
    run("train", card_file(tmp_path), *options(rows), *QUICK, "--steps", 30, "--out", tmp_path / "out")
    run("export", tmp_path / "out" / "model", "--to", "onnx", "--out", tmp_path / "onnx")
    assert run("evaluate", tmp_path / "onnx", "--task", rows, "--json").data["repeats"]
    torch_rows, onnx_rows = (
        run("predict", folder, rows, "--json").data["rows"]
        for folder in (tmp_path / "out" / "model", tmp_path / "onnx")
    )
    assert [row["prediction"] for row in onnx_rows] == [row["prediction"] for row in torch_rows]
