"""Write a model for OpenVINO, and store its weights in 8 bits."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formwright.core.extras import need


def write_openvino(onnx_file: Path, path: Path, int8: bool) -> None:
    """Turn an ONNX file into OpenVINO's `path` (.xml) and the weights beside it (.bin)."""
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
        source = operation.input(place).get_source_output()
        constant = source.get_node()
        if constant.get_type_name() != "Constant" or constant.get_element_type() != openvino.Type.f32:
            continue
        if len(constant.get_output_shape(0)) == 2:
            axis = 1 if place == 0 or operation.get_attributes()["transpose_b"] else 0
            operation.input(place).replace_source_output(_small(constant.data, axis, openvino).output(0))
    model.validate_nodes_and_infer_types()


def _small(weights: NDArray[np.float32], axis: int, openvino: Any) -> Any:
    """Give the node that restores weights from 8 bits; numbers along `axis` share a scale."""
    opset = openvino.opset13
    scale = np.maximum(np.abs(weights).max(axis, keepdims=True), np.finfo(np.float32).tiny) / 127
    numbers = np.rint(weights / scale).astype(np.int8)
    restored = opset.convert(opset.constant(numbers), "f32")
    return opset.multiply(restored, opset.constant(scale.astype(np.float32)))
