"""What a delivered model costs, in the runtimes that are there."""

import sys

import pytest
from tests.compress.tiny import BERT, LENGTH, VIT

from formwright.cost import macs
from formwright.nn.build import build
from formwright.nn.heads import HeadSpec
from formwright.nn.task_model import TaskModel
from formwright.study.measured import measured_costs

TWO = HeadSpec("sequence-classification", 2)


def model() -> TaskModel:
    built = build(BERT, head=TWO)
    assert isinstance(built, TaskModel)
    return built


@pytest.mark.parametrize("absent", ["onnx", "onnxruntime", "onnxscript"])
def test_runtimes_that_are_not_installed_are_left_out(absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, absent, None)
    found = measured_costs(model(), LENGTH)
    assert found.keys() == {"macs", "latency_ms"}
    assert found["macs"] == macs(BERT, LENGTH)
    assert found["latency_ms"] > 0


def test_a_model_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    one = model().train()
    before = {name: tensor.clone() for name, tensor in one.state_dict().items()}
    measured_costs(one, LENGTH)
    assert one.training
    assert all(tensor.equal(before[name]) for name, tensor in one.state_dict().items())


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(300)
def test_every_runtime_is_measured() -> None:
    """Also in 8 bits, with a pooler and two labels, and images."""
    for card in (BERT, VIT):
        built = build(card, head=TWO)
        assert isinstance(built, TaskModel)
        found = measured_costs(built, LENGTH)
        assert list(found) == ["macs", "latency_ms", "onnx_ms", "int8_ms"]
        assert min(found.values()) > 0
