"""Columns with the costs of delivered models, and the line that says what they were counted and measured on."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from formwright.pipeline.delivered import Delivered
    from formwright.pipeline.run_folder import Opened

_HEADS = {"macs": "MACs", "latency_ms": "ms", "onnx_ms": "ms in ONNX", "int8_ms": "ms in int8"}


def cost_columns(models: "Sequence[Delivered]") -> list[tuple[str, list[str]]]:
    """Give a heading and a cell for each model, for every cost that is known of one of them."""
    names = dict.fromkeys(name for model in models for name in model.costs)
    return [
        (f">{_HEADS.get(name, name)}", [_cell(name, model.costs.get(name)) for model in models])
        for name in sorted(names, key=lambda name: name.endswith("_ms"))
    ]


def size_line(opened: "Opened", model: "Delivered") -> str:
    """Say what costs are counted and measured on, and whether the machine was busy meanwhile."""
    from formwright.cost import input_size
    from formwright.pipeline.delivered import card_of_model, last_sitting

    size = input_size(card_of_model(model), opened.search.length)
    sitting = last_sitting(opened.log.read())
    if sitting is None:
        return f"MACs are those of one row of {size}"
    where = "on one thread" if sitting.device == "cpu" else f"on {sitting.device}"
    busy = "; the machine was busy with other work, measure again when it is idle" if sitting.busy else ""
    return f"MACs and milliseconds are those of one row of {size}, measured in turns {where}{busy}"


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if name.endswith("_ms") else f"{value:,.0f}"
