"""A fresh process with plain transformers gets exactly the score that search, train and compress reported."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.cli.compressing import line
from tests.cli.conftest import in_one_process
from tests.cli.studies import called
from tests.cli.training import VISION, card_file, table
from tests.pipeline.compressions import squad

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

PAGE = Path(__file__).parents[2] / "docs" / "evaluate.md"
SCRIPT = Path(__file__).with_name("plain_transformers.py")
LETTERS = "abcdefghij"


def pairs(folder: Path) -> Path:
    """Write pairs of sentences, most of which are longer than 16 tokens together, either one being the longer."""
    draw, lines = Random(0), ["one,two,same"]
    for number in range(160):
        one, two = ([draw.choice(LETTERS) for _ in range(draw.randint(1, 14))] for _ in range(2))
        lines.append(f"{' '.join(one)} {number},{' '.join(two)},{'yes' if one[0] in two else 'no'}")
    path = folder / "pairs.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def reported(folder: Path) -> dict[str, dict[str, Any]]:
    """Search, train and compress; give each model's folder, its data and the scores that were printed."""
    small, rows, read = card_file(folder), table(folder), ("--batch", 8, "--out")
    on_pairs = ("--task", pairs(folder), "--text", "one,two", "--label", "same", "--length", 16, "--test")
    questions = folder / "squad"
    questions.mkdir()
    on_squad = ("--task", "squad", "--data", squad(questions), "--length", 16)
    vision = card_file(folder, VISION, "vision.json")
    trained = {
        "train-pair": called("train", small, *on_pairs, "--steps", 40, *read, folder / "pair"),
        "train-span": called("train", small, *on_squad, "--steps", 20, *read, folder / "span"),
        "train-image": called("train", vision, "--task", "digits", "--steps", 40, *read, folder / "image"),
    }
    files = {"train-pair": folder / "pairs.csv", "train-span": questions, "train-image": ""}
    kinds = {"train-pair": "text", "train-span": "span", "train-image": "image"}
    found = {
        name: {
            "folder": facts["model"],
            "data": str(files[name]),
            "kind": kinds[name],
            "scores": {"validation": facts["metrics"], "test": facts["test"]},
        }
        for name, facts in trained.items()
    }
    on_table = ("--task", rows, "--text", "words", "--label", "b", "--batch", 8)
    few = ("--trials", 1, "--steps", 4, "--final-steps", 12, "--no-baseline", "--workers", 1)
    searched = called("search", "flexibert-nano", *on_table, *few, "--out", folder / "study")
    compressed = called(*line(folder))
    for name, facts in (("search-text", searched), ("compress-text", compressed)):
        model = next(model for model in facts["models"] if model["role"] in ("best", "front"))
        scores = {"validation": model["validation"], "test": model["test"]}
        found[name] = {"folder": model["path"], "data": str(rows), "kind": "text", "scores": scores}
    return found


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("repeat")
    with pytest.MonkeyPatch.context() as patch:
        in_one_process(patch)
        found = reported(folder)
    teacher = Path(found["compress-text"]["folder"]).with_name("teacher")
    stock = {**found["compress-text"], "folder": str(folder / "stock"), "stock": True}
    called("export", teacher, "--to", "stock", "--out", folder / "stock")
    said = json.loads((teacher / "evaluation.json").read_text())["scores"]
    onnx = {**found["train-pair"], "folder": str(folder / "onnx"), "kind": "onnx"}
    called("export", found["train-pair"]["folder"], "--to", "onnx", "--out", folder / "onnx")
    called("export", found["train-pair"]["folder"], "--to", "openvino", "--out", folder / "openvino")
    page = {**found["train-pair"], "kind": "page", "program": program(found["train-pair"])}
    page["scores"] = {**page["scores"], "test": None}  # the program scores validation rows
    return {**found, "stock-text": {**stock, "scores": said}, "onnx-pair": onnx, "page-pair": page}


def program(model: dict[str, Any]) -> str:
    """Give the program of the documentation for a model and its file."""
    programs = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    (found,) = (one for one in programs if "reviews.csv" in one)
    return str(found.replace("FOLDER", model["folder"]).replace("reviews.csv", model["data"]))


@pytest.fixture(scope="module")
def results(models: dict[str, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Let one fresh process, which cannot import this package, score all folders."""
    folder = tmp_path_factory.mktemp("stranger")
    jobs = [{"name": name, **{key: model[key] for key in model if key != "scores"}} for name, model in models.items()]
    (folder / "jobs.json").write_text(json.dumps(jobs))
    environment = {**os.environ, "HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-I", str(SCRIPT)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "results.json").read_text())


@pytest.mark.parametrize(
    "name",
    ["search-text", "train-pair", "train-span", "train-image", "compress-text", "stock-text", "onnx-pair", "page-pair"],
)
def test_a_stranger_gets_the_reported_score(name: str, models: dict[str, Any], results: dict[str, Any]) -> None:
    scores, splits = models[name]["scores"], results[name]
    assert "validation" in splits
    for split, found in splits.items():
        if scores[split] is not None:  # test rows are listed even where nobody opened them
            assert found == pytest.approx({metric: scores[split][metric] for metric in found}, abs=1e-9)
    assert any(scores[split] is not None for split in splits)


def test_the_pairs_are_cut_and_the_cut_matters(models: dict[str, Any]) -> None:
    said = json.loads(Path(models["train-pair"]["folder"], "evaluation.json").read_text())
    tokenizer = json.loads(Path(models["train-pair"]["folder"], "tokenizer_config.json").read_text())
    config = json.loads(Path(models["train-pair"]["folder"], "config.json").read_text())
    assert said["length"] == tokenizer["model_max_length"] == config["input_length"] == 16
    assert config["max_position_embeddings"] == 32


def test_every_form_has_labels_length_and_what_prepares_its_input(models: dict[str, Any]) -> None:
    onnx, openvino = Path(models["onnx-pair"]["folder"]), Path(models["onnx-pair"]["folder"]).with_name("openvino")
    for folder in (onnx, openvino, Path(models["train-pair"]["folder"])):
        config = json.loads((folder / "config.json").read_text())
        tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
        assert config["id2label"] == {"0": "no", "1": "yes"}
        assert config["input_length"] == tokenizer["model_max_length"] == 16
        assert (folder / "tokenizer.json").is_file()
    found = called("evaluate", openvino, "--task", models["onnx-pair"]["data"])
    assert found["repeats"] is True


@pytest.mark.parametrize("name", ["search-text", "train-pair", "train-span", "train-image", "stock-text", "onnx-pair"])
def test_evaluate_repeats_the_score(name: str, models: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model = models[name]
    option = {"span": "--data", "image": None}.get(model["kind"], "--task")
    given = () if option is None else (option, model["data"])
    monkeypatch.chdir(Path(model["folder"]).parent)
    found = called("evaluate", model["folder"], *given)
    assert found["repeats"] is True
    assert found["metrics"] == pytest.approx(model["scores"]["validation"], abs=1e-9)
