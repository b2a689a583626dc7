"""Measure one model on this machine: a folder in any form, or a design with fresh weights."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.cost import macs, params
from formwright.nn.deploy.interface import card_of
from formwright.nn.deploy.runtimes import Runtime
from formwright.nn.hf.model_folder import CARD
from formwright.nn.hf.side_files import read_evaluation
from formwright.nn.measure import Latency, TimingSettings, measure, measure_file
from formwright.pipeline.designs import read_card
from formwright.pipeline.named_model import read_model
from formwright.train.loop import enough_memory

USUAL_LENGTH = 128  # tokens in a row of a model that was trained with no length
_FILES = {"model.onnx": "onnxruntime", "model.xml": "openvino"}


def trained_length(source: str) -> int | None:
    """Give the length that a delivered folder was trained and evaluated with; None where it says none."""
    evaluation = read_evaluation(Path(source)) if os.path.isdir(source) else None
    found = None if evaluation is None else evaluation.get("length")
    return found if isinstance(found, int) and found > 0 else None


def measure_model(source: str, trial: TimingSettings, runtime: str | None = None) -> tuple[Card, dict[str, Any]]:
    """Measure a model; give its card, and its latency, memory and costs as JSON data.

    A folder that was exported for a runtime is measured in that, everything else in torch unless `runtime` is given.
    """
    file = next((Path(source) / name for name in _FILES if os.path.isfile(Path(source) / name)), None)
    if trial.device != "cpu" and (file is not None or runtime not in (None, "torch")):
        raise IllegalInput(
            f"the device {trial.device} is for models that run in torch; other runtimes use the processor"
        )
    with enough_memory(f"by a row of {trial.length:,} tokens; measure a shorter one with --length"):
        name, card, latency = _in_torch(source, trial, runtime) if file is None else _of_file(file, trial, runtime)
    return card, {
        "name": name,
        "family": card.family,
        "digest": card.digest,
        "batch": trial.batch,
        "length": trial.length,
        "params": params(card),
        "macs": macs(card, trial.length),
        **asdict(latency),
    }


def _of_file(file: Path, trial: TimingSettings, runtime: str | None) -> tuple[str, Card, Latency]:
    own = _FILES[file.name]
    if runtime not in (None, own):
        raise IllegalInput(f"{file} runs in {own}, not in {runtime}; measure the folder it was exported from")
    card = read_card(file.parent / CARD).card
    return file.parent.name, card, measure_file(file, card, trial)


def _in_torch(source: str, trial: TimingSettings, runtime: str | None) -> tuple[str, Card, Latency]:
    found = read_model(source)
    return found.name, card_of(found.model), measure(found.model, trial, cast(Runtime, runtime or "torch"))
