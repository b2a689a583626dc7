"""`formwright predict` and `formwright evaluate`: what they print, and what they refuse."""

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Run
from tests.cli.training import VISION, card_file, on_table, table
from tests.tasks.test_idx import write_idx

from formwright.arch.heads import HeadSpec
from formwright.nn.build import build
from formwright.nn.hf.save import save_pretrained_folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from formwright.cli.app import main

    folder = tmp_path_factory.mktemp("trained")
    options = ("train", card_file(folder), *on_table(table(folder)), "--steps", 4, "--out", folder / "out")
    with pytest.raises(SystemExit) as end:
        main([str(option) for option in options])
    assert not end.value.code
    return folder


def model_of(trained: Path) -> Path:
    return trained / "out" / "model"


def test_the_columns_of_the_file_come_first_then_prediction_and_probability(run: Run, trained: Path) -> None:
    done = run("predict", model_of(trained), trained / "mine.csv").printed()
    rows = list(csv.DictReader(io.StringIO(done.out)))
    given = list(csv.DictReader(io.StringIO((trained / "mine.csv").read_text())))
    assert list(rows[0]) == ["words", "b", "prediction", "probability"]
    assert [{name: row[name] for name in ("words", "b")} for row in rows] == given
    assert {row["prediction"] for row in rows} <= {"yes", "no"}
    assert all(0.5 <= float(row["probability"]) <= 1 for row in rows)


def test_predictions_give_the_recorded_score_on_the_recorded_rows(run: Run, trained: Path) -> None:
    rows = run("predict", model_of(trained), trained / "mine.csv", "--json").data["rows"]
    said = json.loads((model_of(trained) / "evaluation.json").read_text())
    judged = [rows[index] for index in said["rows"]["validation"]["indices"]]
    right = sum(row["prediction"] == row["b"] for row in judged) / len(judged)
    assert right == pytest.approx(said["scores"]["validation"]["accuracy"], abs=1e-12)


def test_objects_keep_what_they_hold_and_rows_need_no_label(run: Run, trained: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "new.jsonl", tmp_path / "answers.jsonl"
    path.write_text('{"words": "a b c", "tags": [1, 2]}\n{"words": "d e f", "tags": null}\n')
    done = run("predict", model_of(trained), path, "--out", out)
    assert (done.code, done.out) == (0, "")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["tags"] for row in rows] == [[1, 2], None]
    assert list(rows[0]) == ["words", "tags", "prediction", "probability"]


def test_standard_input_is_read(run: Run, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"number;words\n1;a b\n2;c d\n")))
    done = run("predict", model_of(trained), "-").printed()
    assert done.out.splitlines()[0] == "number,words,prediction,probability"
    assert len(done.out.splitlines()) == 3


def test_standard_input_is_named_so_in_errors(run: Run, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    done = run("predict", model_of(trained), "-").refused("standard input")
    assert ".csv" not in done.err  # nor a temporary file, which nobody has seen


@pytest.mark.parametrize(
    ("content", "options", "facts"),
    [
        ("wrods,b\na,yes\n", (), ("'words'", "'wrods'")),
        ("words,prediction\na,yes\n", (), ("'prediction'",)),
        ("words,b\n", (), ("no rows",)),
        ("words,b\na,yes\n", ("--text", "a,b,c"), ("--text",)),
        ("words,b\na,yes\n", ("--text", "words,b"), ("1 text column", "words", "2")),
        ("words,b\na,yes\n", ("--out", "answers.xlsx"), ("answers.xlsx", ".csv")),
    ],
)
def test_what_cannot_be_answered_is_refused(
    run: Run, trained: Path, tmp_path: Path, content: str, options: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    path = tmp_path / "new.csv"
    path.write_text(content)
    run("predict", model_of(trained), path, *options).refused(*facts)


def test_the_folder_of_a_run_is_refused_with_its_model(run: Run, trained: Path) -> None:
    for command in (("evaluate", trained / "out"), ("predict", trained / "out", trained / "mine.csv")):
        run(*command).refused(str(model_of(trained)))


def test_a_model_of_images_is_refused_with_what_to_use(run: Run, tmp_path: Path, trained: Path) -> None:
    folder = save_pretrained_folder(build(VISION, head=HeadSpec("sequence-classification", 10)), tmp_path / "images")
    run("predict", folder, trained / "mine.csv", "--text", "words").refused("image-classification")


def test_evaluate_finds_its_task_and_repeats_the_score(
    run: Run, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = json.loads((model_of(trained) / "evaluation.json").read_text())
    assert said["task"]["name"] == "mine.csv"  # without the folders of this machine
    monkeypatch.chdir(trained)
    found = run("evaluate", model_of(trained), "--json").data
    assert found["repeats"] is True
    assert found["metrics"] == pytest.approx(found["recorded"], abs=1e-12)
    assert found["length"] == 16


def test_evaluate_from_elsewhere_says_how_to_name_the_file(
    run: Run, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run("evaluate", model_of(trained)).refused("mine.csv", "--task PATH")


def test_pictures_of_another_size_are_refused_with_both_sizes(run: Run, tmp_path: Path) -> None:
    model = save_pretrained_folder(build(VISION, head=HeadSpec("sequence-classification", 10)), tmp_path / "images")
    file = tmp_path / "test-images-idx3-ubyte"
    write_idx(file, np.zeros((3, 4, 4), np.uint8))
    run("predict", model, file).refused("4 pixels", "1 and 8")
    write_idx(file, np.zeros((3, 8, 8), np.uint8))
    assert len(run("predict", model, file, "--json").data["rows"]) == 3


def test_evaluate_says_that_other_rows_are_no_repetition(run: Run, trained: Path, tmp_path: Path) -> None:
    lines = (trained / "mine.csv").read_text().splitlines()
    other = tmp_path / "mine.csv"
    other.write_text("\n".join([*lines, *(f"new {number} a,no" for number in range(40))]) + "\n")
    done = run("evaluate", model_of(trained), "--task", other, "--json").printed()
    assert (done.data["recorded"], done.data["repeats"]) == (None, None)
    assert "validation rows" in done.err


def test_each_look_at_the_test_rows_is_recorded_and_computed_anew(run: Run, trained: Path) -> None:
    task = ("--task", trained / "mine.csv", "--split", "test", "--json")
    first, second = (run("evaluate", model_of(trained), *task).data for _ in range(2))
    assert first["metrics"] == second["metrics"]
    assert second["test_openings"] == first["test_openings"] + 1
    record = json.loads((model_of(trained) / "test-openings.json").read_text())
    assert [entry["metrics"] for entry in record[-2:]] == [first["metrics"]] * 2
    assert run("evaluate", model_of(trained), "--task", trained / "mine.csv", "--json").data["test_openings"] == 0


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (("--task", "mini-glue/stsb"), ("labels",)),
        (("--task", "digits"), ("digits",)),
        (("--split", "training"), ("validation", "test")),
        (("--task", "nowhere.csv"), ("nowhere.csv",)),
    ],
)
def test_another_task_is_refused(run: Run, trained: Path, options: tuple[str, ...], facts: tuple[str, ...]) -> None:
    run("evaluate", model_of(trained), *options).refused(*facts)


def test_a_renamed_file_is_read_with_the_recorded_columns(run: Run, trained: Path, tmp_path: Path) -> None:
    renamed = tmp_path / "renamed.csv"
    renamed.write_bytes((trained / "mine.csv").read_bytes())
    assert run("evaluate", model_of(trained), "--task", renamed, "--json").data["repeats"] is True


@pytest.fixture
def unsealed(trained: Path, tmp_path: Path) -> Path:
    """Copy the model, without its checksums: its files may be edited."""
    folder = tmp_path / "copy"
    shutil.copytree(model_of(trained), folder)
    (folder / "SHA256SUMS").unlink()
    return folder


@pytest.mark.parametrize(
    "edit",
    [
        {"scores": {"validation": "good"}},
        {"beams": "x"},
        {"beams": 10**9},
        {"columns": 5},
        {"task": {"name": 7}},
        {"task": {"name": "mine.csv", "other": 1}},
        {"task": {"name": "mine.csv", "text": [1]}},
        {"task": {"name": "mine.csv", "label": ["b"]}},
        {"task": {"name": "mine.csv", "rows": 0}},
        {"data": {"validation rows": {"rows": "many"}}},
    ],
)
def test_a_damaged_record_is_refused(run: Run, trained: Path, unsealed: Path, edit: dict[str, object]) -> None:
    path = unsealed / "evaluation.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | edit))
    run("evaluate", unsealed, "--task", trained / "mine.csv").refused("evaluation.json", *edit)


def test_the_weights_say_what_a_model_answers_not_its_record(run: Run, trained: Path, unsealed: Path) -> None:
    path = unsealed / "evaluation.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"kind": "regression"}))
    rows = run("predict", unsealed, trained / "mine.csv", "--json").data["rows"]
    assert {row["prediction"] for row in rows} <= {"yes", "no"}


def test_a_file_of_another_runtime_that_is_none_is_refused(run: Run, trained: Path, unsealed: Path) -> None:
    (unsealed / "model.onnx").write_text("no model")
    run("predict", unsealed, trained / "mine.csv").refused("model.onnx")


def test_a_missing_file_is_said_to_be_missing(run: Run, trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(model_of(trained), folder)
    (folder / "tokenizer.json").unlink()
    done = run("evaluate", folder, "--task", trained / "mine.csv").refused("tokenizer.json is missing")
    assert "another" not in done.err
