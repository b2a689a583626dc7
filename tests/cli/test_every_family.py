"""Compressions to delivery and searches by recipe for models that are no encoders of text."""

import json
from pathlib import Path

import pytest
from tests.cli.compressing import ALONE
from tests.cli.conftest import Run
from tests.cli.test_other_rows import again, write_recordings
from tests.recipes.test_eftnas import DECODER, TRANSLATOR, of_ours

from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.cost import macs
from formwright.nn.hf.load import from_hf

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("one_process"),
]
EPOCHS = ("--set", "teacher.epochs=1", "--set", "super-network.epochs=1", "--set", "space.configurations=2")
QUICK = (*EPOCHS, "--set", "scores.batches=2", "--trials", 2, "--batch", 16, *ALONE)


def compressed(run: Run, folder: Path, model: Path, *options: object) -> Path:
    """Compress a model to three quarters of its operations; see that it is smaller, and has its scores again."""
    run("compress", model, *options, "--target", "macs=75%", *QUICK, "--out", folder / "out").printed("macs-75pct")
    small = folder / "out" / "models" / "macs-75pct"
    before, after = (macs(from_hf(one).card, 16) for one in (model, small))
    assert after <= 0.75 * before
    task = [option for option in options if option not in ("--rows", 60)]
    assert run("evaluate", small, *task, "--json").data["repeats"] is True
    return small


def test_a_model_of_frames_is_compressed(run: Run, tmp_path: Path) -> None:
    data = write_recordings(tmp_path / "data")
    card = Card(encoder=Stack(FrameEmbedding(12, 16, length=64), (Block(16, Attention(4, 4), (64,)),) * 2))
    (tmp_path / "card.json").write_bytes(card.canonical)
    run("train", tmp_path / "card.json", "--task", data, "--steps", 20, "--out", tmp_path / "large").printed()
    small = compressed(run, tmp_path, tmp_path / "large" / "model", "--task", data)
    found = run("predict", small, data / "low", "--json").data["rows"]
    assert len(found) == 20
    assert {row["prediction"] for row in found} <= {"low", "high"}


@pytest.mark.parametrize("task", ["pydoc/causal", "translation"])
def test_models_that_write_are_compressed(run: Run, tmp_path: Path, task: str) -> None:
    card, head = {"pydoc/causal": (DECODER, "causal-lm"), "translation": (TRANSLATOR, "seq2seq-lm")}[task]
    model = of_ours(tmp_path / "model", card, HeadSpec(head))
    small = compressed(run, tmp_path, model, "--task", task, "--rows", 60)
    (tmp_path / "begun.txt").write_text("the red house\n", encoding="utf-8")
    (row,) = run("predict", small, tmp_path / "begun.txt", "--json").data["rows"]
    assert isinstance(row["prediction"], str)


def test_decoders_are_searched_with_shared_weights_by_a_recipe(run: Run, tmp_path: Path) -> None:
    short = ("--trials", 2, "--rows", 60, "--batch", 8, "--length", 16, "--final-steps", 5, "--workers", 1)
    recipe = ("gpt-nano", "--recipe", "spos", "--set", "super-network.steps=5", "--task", "pydoc/causal")
    run("search", *recipe, *short, "--out", tmp_path / "study").printed("perplexity")
    model = next((tmp_path / "study" / "models").iterdir())
    again(run, model, onnx=False)
    assert json.loads((model / "evaluation.json").read_text())["kind"] == "causal-lm"
