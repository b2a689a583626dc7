"""Write a model as an ONNX file, and quantise it."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from formwright.core.extras import need
from formwright.nn.deploy.interface import NamedModel, axes, card_of, output_names, random_inputs
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Transformer

# sizes of the traced example, all different: torch takes equal sizes for one and the same dimension
_BATCH, _LENGTH = 3, 7
_QUANTISED = ["MatMul", "Gather"]  # linear maps and tables; convolutions are small and lose much


def write_onnx(model: TaskModel | Transformer, path: Path) -> None:
    """Write a model with free batch and length; torch's exporter decides on the operator set."""
    inputs = random_inputs(card_of(model), _BATCH, _LENGTH, torch.Generator().manual_seed(0))
    # without gradients the fused attention has one layout throughout, on which the exporter depends
    with torch.no_grad(), _quiet():
        torch.onnx.export(
            NamedModel(model).eval(),
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
            model,
            target,
            op_types_to_quantize=_QUANTISED,
            per_channel=True,
            weight_type=quantisation.QuantType.QInt8,
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
