from pathlib import Path

import pytest
import torch
from tests.nn.cases import MIXERS, WIDTH, block

from formwright.arch.card import Card
from formwright.arch.layers import Stack, TokenEmbedding
from formwright.nn import memory
from formwright.nn.build import build
from formwright.nn.deploy.interface import random_inputs
from formwright.nn.task_model import HeadSpec


@pytest.mark.slow
def test_memory_is_about_the_weights_and_the_scores() -> None:
    card = Card(Stack(TokenEmbedding(1_000_000, WIDTH), (block(MIXERS["sdp"], "post"),)))
    model = build(card, head=HeadSpec("masked-lm"))
    peak = memory.peak_memory_of_model(model, random_inputs(card, 1, 8, torch.Generator()), 1)
    weights, scores = 64.0, 32.0  # a million vectors of 16 numbers; 8 tokens times a million scores
    if Path("/proc").exists():
        assert peak is not None
        assert weights + scores <= peak < weights + scores + 60
    else:
        assert peak is None


def test_none_where_the_system_does_not_tell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "_RESET", tmp_path / "absent")
    assert memory.peak_memory_of_file(tmp_path / "model.onnx", {}, 1) is None


@pytest.mark.slow
def test_a_failure_of_the_fresh_process_is_told(tmp_path: Path) -> None:
    if memory._RESET.exists():
        with pytest.raises(RuntimeError, match=r"absent\.onnx"):
            memory.peak_memory_of_file(tmp_path / "absent.onnx", {}, 1)
