"""Tags of words, relations and language: from a user's file to a model that transformers loads."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.cli.compressing import line
from tests.cli.conftest import Run
from tests.cli.studies import SPACE, called, facts
from tests.cli.training import DECODER, ENCODER, QUICK, card_file

from formwright.arch.card import Card

COLOURS, THINGS = ("red", "blue", "green", "white"), ("house", "car", "dog")
LEARN = ("--learning-rate", "1e-2", "--dropout", 0)


def column_file(folder: Path) -> Path:
    """Write sentences in which colours are tagged."""
    words = [(number, "my", THINGS[number % 3], "is", COLOURS[number % 4]) for number in range(120)]
    rows = ["\tO\n".join(map(str, sentence)) + "\tB-colour\n" for sentence in words]
    path = folder / "colours.conll"
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def relation_file(folder: Path) -> Path:
    """Write numbered sentences whose relation is the order of two words."""
    rows = []
    for number in range(120):
        words, name = (("house", "car"), "Near(e1,e2)") if number % 2 else (("car", "house"), "Near(e2,e1)")
        rows.append(f'{number}\t"My <e1>{words[0]}</e1> {number} is by a <e2>{words[1]}</e2>."\n{name}\nComment:\n\n')
    path = folder / "near.txt"
    path.write_text("".join(rows), encoding="utf-8")
    return path


def prose(folder: Path) -> Path:
    lines = [f"my {THINGS[number % 3]} is {COLOURS[number % 4]} and big" for number in range(120)]
    path = folder / "prose.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


KINDS: dict[str, tuple[Callable[[Path], Path], Card, str, str]] = {
    "token-classification": (column_file, ENCODER, "entity-f1", SPACE),
    "relation-classification": (relation_file, ENCODER, "relation-f1", SPACE),
    "causal-lm": (prose, DECODER, "perplexity", "gpt-nano"),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Path]]:
    """Give what trains a model of a kind, once, and returns the file of its rows and its folder."""

    @cache
    def of_kind(kind: str) -> tuple[Path, Path]:
        write, card, _, _ = KINDS[kind]
        folder = tmp_path_factory.mktemp(kind)
        rows = write(folder)
        training = (*QUICK, "--steps", 120, *LEARN, "--out", folder / "out")
        called("train", card_file(folder, card), "--task", rows, *training)
        return rows, folder / "out" / "model"

    return of_kind


Trained = Callable[[str], tuple[Path, Path]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_is_trained_judged_again_and_predicts(run: Run, trained: Trained, tmp_path: Path, kind: str) -> None:
    (rows, folder), metric = trained(kind), KINDS[kind][2]
    again = run("evaluate", folder, "--task", rows, "--json").data
    kept = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
    assert (again["repeats"], kept["kind"]) == (True, kind)
    score = again["metrics"][metric]
    assert score < 10 if metric == "perplexity" else score > 0.9
    CHECKS[kind](run, folder, tmp_path)


def test_pieces_of_texts_are_as_short_again_as_the_scores_say(run: Run, tmp_path: Path) -> None:
    options = ("--task", "pydoc/causal", "--rows", 60, *QUICK, "--steps", 2, "--out", tmp_path / "out")
    run("train", card_file(tmp_path, DECODER), *options).printed("perplexity")
    found = run("evaluate", tmp_path / "out" / "model", "--json").data
    assert (found["repeats"], found["length"]) == (True, 16)  # the design reads 32 tokens


def _check_tags(run: Run, folder: Path, tmp_path: Path) -> None:
    done = run("predict", folder, column_file(tmp_path)).out
    assert done.splitlines()[:5] == ["0\tO", "my\tO", "house\tO", "is\tO", "red\tB-colour"]
    (tmp_path / "more.csv").write_text("text\n7 my dog is blue\n", encoding="utf-8")
    (row,) = run("predict", folder, tmp_path / "more.csv", "--json").data["rows"]
    assert row["prediction"] == ["O", "O", "O", "O", "B-colour"]
    assert all(0.5 < share <= 1 for share in row["probability"])


def _check_relations(run: Run, folder: Path, tmp_path: Path) -> None:
    text = "My <e1>house</e1> 7 is by a <e2>car</e2>."
    (tmp_path / "more.csv").write_text(f"text\n{text}\n", encoding="utf-8")
    (row,) = run("predict", folder, tmp_path / "more.csv", "--json").data["rows"]
    assert row["prediction"] == "Near(e1,e2)"


def _check_language(run: Run, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "begun.txt").write_text("my dog\n", encoding="utf-8")
    (row,) = run("predict", folder, tmp_path / "begun.txt", "--json").data["rows"]
    assert row["prediction"].startswith("is ")
    assert row["prediction"].endswith("and big")


CHECKS: dict[str, Any] = {
    "token-classification": _check_tags,
    "relation-classification": _check_relations,
    "causal-lm": _check_language,
}

PLAIN = """
import json, sys
sys.modules["formwright"] = None  # importing it would fail
from transformers import pipeline
for folder, task, text in json.loads(sys.argv[1]):
    options = {"do_sample": False} if task == "text-generation" else {}  # by default, it draws tokens
    answer = pipeline(task, folder, trust_remote_code=True)(text, **options)
    print(answer[0].get("label") or answer[0].get("word") or answer[0]["generated_text"])
"""


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_transformers_alone_say_the_same(run: Run, trained: Trained, tmp_path: Path) -> None:
    questions = {
        "token-classification": ("token-classification", "7 my dog is blue"),
        "relation-classification": ("text-classification", "My <e1>car</e1> 7 is by a <e2>house</e2>."),
        "causal-lm": ("text-generation", "my dog"),
    }
    asked = json.dumps([(str(trained(kind)[1]), *question) for kind, question in questions.items()])
    done = subprocess.run([sys.executable, "-c", PLAIN, asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tagged, relation, text = done.stdout.splitlines()
    assert (tagged, relation) == ("blue", "Near(e2,e1)")
    # the text is continued as Formwright does, but for a space before the first new word
    (tmp_path / "begun.txt").write_text("my dog\n", encoding="utf-8")
    (row,) = run("predict", trained("causal-lm")[1], tmp_path / "begun.txt", "--json").data["rows"]
    assert row["prediction"].startswith("is ")
    assert text.removeprefix("my dog").strip() == row["prediction"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind == "token-classification" else pytest.mark.long) for kind in KINDS]
)
def test_onnx_says_the_same(run: Run, trained: Trained, tmp_path: Path, kind: str) -> None:
    rows, folder = trained(kind)
    run("export", folder, "--to", "onnx", "--out", tmp_path / "onnx")
    scores = [run("evaluate", one, "--task", rows, "--json").data for one in (folder, tmp_path / "onnx")]
    assert [one["repeats"] for one in scores] == [True, True]
    assert scores[1]["metrics"] == pytest.approx(scores[0]["metrics"], rel=1e-5)
    if kind == "causal-lm":
        (tmp_path / "begun.txt").write_text("my dog\n", encoding="utf-8")
        run("predict", tmp_path / "onnx", tmp_path / "begun.txt").refused("onnx", "exported")


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_a_design_is_searched(tmp_path: Path, kind: str) -> None:
    write, _, metric, space = KINDS[kind]
    short = ("--trials", 2, "--steps", 5, "--final-steps", 5, "--workers", 1, *QUICK)
    found = facts("search", space, "--task", write(tmp_path), *short, "--out", tmp_path / "study")
    assert metric in found["models"][0]["test"]


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["token-classification", "relation-classification"])
def test_a_model_is_compressed(tmp_path: Path, kind: str) -> None:
    write, _, metric, _ = KINDS[kind]
    found = facts(*line(tmp_path, "--target", "macs=60%", task=("--task", write(tmp_path))))
    teacher, small = found["models"]
    assert small["params"] < teacher["params"]
    assert metric in small["test"]
