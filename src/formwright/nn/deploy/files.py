"""Export a model to a file of another runtime, and keep it only if it agrees with torch."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from formwright.core.errors import IllegalInput
from formwright.core.extras import need
from formwright.nn.deploy.interface import NamedModel, card_of, longest, random_inputs
from formwright.nn.deploy.onnx_file import quantise_onnx, write_onnx
from formwright.nn.deploy.openvino_file import write_openvino
from formwright.nn.deploy.runtimes import open_file
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Transformer

Kind = Literal["onnx", "openvino"]
LARGEST_DIFFERENCE = 1e-3  # of a float export; 8 bits differ by what they must
_LENGTHS, _BATCHES = (1, 7, 64), (1, 5)
_NEEDED = {
    "onnx": (("onnx", "onnx"), ("onnxscript", "onnx"), ("onnxruntime", "onnx")),
    "openvino": (("onnx", "openvino"), ("onnxscript", "openvino"), ("openvino", "openvino")),
}
_NAMES = {"onnx": ("model.onnx",), "openvino": ("model.bin", "model.xml")}  # what others refer to comes last


@dataclass(frozen=True)
class Exported:
    """The file that was written, and how far its outputs are from torch's at most."""

    path: Path
    largest_difference: float


def export(model: TaskModel | Transformer, kind: Kind, folder: Path, int8: bool = False) -> Exported:
    """Write `model.onnx`, or `model.xml` and `model.bin`, into `folder`; batch and length stay free.

    The file is run on random batches beside torch. One of floats that differs by more than 0.001 is refused. With
    `int8`, ONNX Runtime also computes in 8 bits; OpenVINO stores weights in 8 bits and computes with floats.
    """
    for module, extra in _NEEDED[kind]:
        need(module, extra)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=folder) as part:
        path = _write(model, kind, Path(part), int8)
        difference = compare(model, path)
        if not difference <= (np.finfo(np.float32).max if int8 else LARGEST_DIFFERENCE):  # also refuses NaN
            raise IllegalInput(
                f"the {kind} export differs from torch by {difference:.2g}, more than {LARGEST_DIFFERENCE}; "
                "it was not kept. Please report the card"
            )
        for name in _NAMES[kind]:
            os.replace(Path(part) / name, folder / name)
    return Exported(folder / path.name, difference)


def _write(model: TaskModel | Transformer, kind: Kind, part: Path, int8: bool) -> Path:
    plain, path = part / "float.onnx", part / _NAMES[kind][-1]
    training = model.training
    try:
        write_onnx(model.eval(), plain)
    finally:
        model.train(training)
    if kind == "openvino":
        write_openvino(plain, path, int8)
    elif int8:
        quantise_onnx(plain, path)
    else:
        plain.rename(path)
    return path


def compare(model: TaskModel | Transformer, path: Path) -> float:
    """Give the largest difference between the outputs of a file and of torch, over batches with and without padding."""
    run, named, card = open_file(path, torch.get_num_threads()), NamedModel(model), card_of(model)
    generator = torch.Generator().manual_seed(0)
    training = model.training
    named.eval()
    worst = 0.0
    try:
        for length in sorted({longest(card, length) for length in _LENGTHS}):
            for batch in _BATCHES:
                inputs = random_inputs(card, batch, length, generator, padded=True)
                with torch.inference_mode():
                    wanted = named(**inputs)
                found = run({name: tensor.numpy() for name, tensor in inputs.items()})
                apart = [np.abs(given - want.numpy()).max() for given, want in zip(found, wanted, strict=True)]
                worst = float(np.max([worst, *apart]))  # numpy's maximum keeps NaN
    finally:
        model.train(training)
    return worst
