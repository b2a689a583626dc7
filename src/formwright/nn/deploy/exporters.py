"""Export a model to a file of another runtime, and keep it only if it agrees with torch."""

import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.core.extras import need
from formwright.nn.deploy.interface import NamedInputsModel, axes, longest, output_names, random_inputs
from formwright.nn.deploy.runtimes import open_file
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Transformer

# sizes of the traced example, all different: torch takes equal sizes for one and the same dimension
_BATCH, _LENGTH = 3, 7
_QUANTISED = ["MatMul", "Gather"]  # linear maps and tables; convolutions are small and lose much


def write_onnx(model: TaskModel | Transformer, path: Path) -> None:
    """Write a model with free batch and length; torch's exporter decides on the operator set."""
    inputs = random_inputs(model.card, _BATCH, _LENGTH, torch.Generator().manual_seed(0))
    # without gradients the fused attention has one layout throughout, on which the exporter depends
    with torch.no_grad(), _quiet():
        torch.onnx.export(
            NamedInputsModel(model).eval(),
            kwargs=dict(inputs),
            f=path,
            input_names=list(inputs),
            output_names=list(output_names(model)),
            dynamic_shapes={name: axes(name) for name in inputs},
            dynamo=True,
            external_data=False,
            verbose=False,
        )


def quantise_onnx(path: Path, target: Path) -> None:
    """Write an ONNX file again with 8-bit linear maps and tables; activations are quantised while it runs."""
    quantisation: Any = need("onnxruntime.quantization", "onnx")
    onnx: Any = need("onnx", "onnx")
    model = onnx.load(path)
    del model.graph.value_info[:]  # the quantiser turns maps around, and then trips over the shapes they had
    with _quiet():
        quantisation.quantize_dynamic(
            model, target, op_types_to_quantize=_QUANTISED, per_channel=True, weight_type=quantisation.QuantType.QInt8
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporters' remarks to their own developers off the screen."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def write_openvino(onnx_file: Path, path: Path, int8: bool) -> None:
    """Turn an ONNX file into OpenVINO's `path` (.xml) and the weights next to it (.bin)."""
    openvino: Any = need("openvino", "openvino")
    model = openvino.convert_model(onnx_file)
    if int8:
        _compress(model, openvino)
    openvino.save_model(model, path, compress_to_fp16=False)


def _compress(model: Any, openvino: Any) -> None:
    """Store the weights of linear maps and tables as 8-bit numbers and a scale for each channel.

    OpenVINO's plug-ins know this pattern and multiply from the small weights. Its own tool for it lives in the package
    `nncf`, which we do not need: the rewriting is this function.
    """
    for operation in model.get_ordered_ops():
        place = {"MatMul": 1, "Gather": 0}.get(operation.get_type_name())
        if place is None:
            continue
        constant = operation.input(place).get_source_output().get_node()
        if constant.get_type_name() != "Constant" or constant.get_element_type() != openvino.Type.f32:
            continue
        if len(constant.get_output_shape(0)) == 2:
            axis = 1 if place == 0 or operation.get_attributes()["transpose_b"] else 0
            operation.input(place).replace_source_output(_small(constant.data, axis, openvino).output(0))
    model.validate_nodes_and_infer_types()


def _small(weights: NDArray[np.float32], axis: int, openvino: Any) -> Any:
    """Return the node that restores weights from 8 bits; numbers along `axis` share a scale."""
    opset = openvino.opset13
    scale = np.maximum(np.abs(weights).max(axis, keepdims=True), np.finfo(np.float32).tiny) / 127
    restored = opset.convert(opset.constant(np.rint(weights / scale).astype(np.int8)), "f32")
    return opset.multiply(restored, opset.constant(scale.astype(np.float32)))


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


def check_installed(kind: Kind) -> None:
    """Raise `MissingExtra`, which says what to install, where an export or its runtime needs something."""
    for module, extra in _NEEDED[kind]:
        need(module, extra)


def export(model: TaskModel | Transformer, kind: Kind, folder: Path, int8: bool = False) -> Exported:
    """Write `model.onnx`, or `model.xml` and `model.bin`, into `folder`; batch and length stay free.

    The file is compared with torch on random batches; a float export that differs by more than 0.001 raises. With
    `int8`, ONNX Runtime also computes in 8 bits; OpenVINO stores weights in 8 bits and computes with floats.
    """
    check_installed(kind)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=folder) as part:
        path = _write(model, kind, Path(part), int8)
        difference = compare(model, path)
        if not difference <= (np.finfo(np.float32).max if int8 else LARGEST_DIFFERENCE):  # also true for NaN
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
    """Return the largest difference between the outputs of a file and of torch, with and without padding."""
    run, named, card = open_file(path, torch.get_num_threads()), NamedInputsModel(model), model.card
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
