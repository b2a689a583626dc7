"""What a delivered model costs on this machine, in every runtime that is installed."""

import tempfile
from contextlib import suppress
from pathlib import Path

from formwright.core.errors import MissingExtra
from formwright.cost import macs
from formwright.nn.deploy import export
from formwright.nn.measure import Trial, measure, measure_file
from formwright.nn.task_model import TaskModel

_RUNS = 50


def measured_costs(model: TaskModel, length: int) -> dict[str, float]:
    """Count the operations of a model and measure one row in torch, in ONNX Runtime, and there in 8 bits.

    Runtimes that are not installed are left out. The median of the runs counts.
    """
    card = model.transformer.card
    found = {"macs": float(macs(card, length))}
    found["latency_ms"] = measure(model, length=length, runs=_RUNS, memory=False).median_ms
    with suppress(MissingExtra):  # without the extra `onnx` there is nothing else to measure
        found["onnx_ms"] = _exported_ms(model, length, int8=False)
        found["int8_ms"] = _exported_ms(model, length, int8=True)
    return found


def _exported_ms(model: TaskModel, length: int, *, int8: bool) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = export(model, "onnx", Path(folder), int8=int8).path
        return measure_file(path, model.transformer.card, Trial(length=length, runs=_RUNS), memory=False).median_ms
