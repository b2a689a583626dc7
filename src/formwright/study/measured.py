"""What a delivered model costs on this machine, in every runtime that is installed."""

import tempfile
from contextlib import suppress
from pathlib import Path

from formwright.arch.card import Card
from formwright.core.errors import MissingExtra
from formwright.cost import macs
from formwright.nn.deploy import export
from formwright.nn.deploy.onnx_file import quantise_onnx
from formwright.nn.measure import Trial, measure, measure_file
from formwright.nn.task_model import TaskModel

_RUNS = 50


def measured_costs(model: TaskModel, length: int, latency_ms: float | None = None) -> dict[str, float]:
    """Count the operations of a model and measure one row in torch, in ONNX Runtime, and there in 8 bits.

    Runtimes that are not installed are left out. The median of the runs counts. What torch takes may be known already.
    """
    card = model.transformer.card
    found = {"macs": float(macs(card, length))}
    found["latency_ms"] = torch_ms(model, length) if latency_ms is None else latency_ms
    with suppress(MissingExtra), tempfile.TemporaryDirectory() as folder:  # of the extra `onnx`
        path = export(model, "onnx", Path(folder)).path
        found["onnx_ms"] = _file_ms(path, card, length)
        small = path.with_name("int8.onnx")
        quantise_onnx(path, small)  # which is sooner done than to export the model once more
        found["int8_ms"] = _file_ms(small, card, length)
    return found


def torch_ms(model: TaskModel, length: int) -> float:
    """Measure one row of a model in torch, on one thread."""
    return measure(model, Trial(length=length, runs=_RUNS), memory=False).median_ms


def _file_ms(path: Path, card: Card, length: int) -> float:
    return measure_file(path, card, Trial(length=length, runs=_RUNS), memory=False).median_ms
