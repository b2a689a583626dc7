"""Run a model's file in the runtime it was written for."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.extras import need
from formwright.nn.hf.model_folder import verify_checksums

Runtime = Literal["torch", "onnxruntime", "openvino"]
Arrays = Mapping[str, NDArray[Any]]
Run = Callable[[Arrays], list[NDArray[Any]]]
_ERRORS_ONLY = 3
_LIBRARIES = {".onnx": ("onnxruntime", "onnx"), ".xml": ("openvino", "openvino")}


def load_library(path: Path) -> Any:
    if path.suffix not in _LIBRARIES:
        raise IllegalInput(f"{path} is neither an ONNX (.onnx) nor an OpenVINO (.xml) model")
    return need(*_LIBRARIES[path.suffix])


def open_file(path: Path, threads: int) -> Run:
    """Load a model's file and give the function that runs it, from named inputs to outputs in order."""
    verify_checksums(path.parent)
    library = load_library(path)
    read = _open_onnx if path.suffix == ".onnx" else _open_openvino
    try:
        return read(library, path, threads)
    except Exception as error:  # each runtime has kinds of its own
        reason = str(error).strip().partition("\n")[0]
        raise IllegalInput(f"{library.__name__} cannot read {path}: {reason}") from error


def _open_onnx(runtime: Any, path: Path, threads: int) -> Run:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, dict(inputs))


def _open_openvino(openvino: Any, path: Path, threads: int) -> Run:
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",  # processors with 16-bit units would round everything otherwise
    }
    compiled = openvino.Core().compile_model(path, "CPU", settings)
    request = compiled.create_infer_request()

    def run(inputs: Arrays) -> list[NDArray[Any]]:
        results = request.infer(dict(inputs), share_inputs=True, share_outputs=True)
        return [np.asarray(results[output]) for output in compiled.outputs]

    return run


class FileModel(nn.Module):
    """Run a file where a `TaskModel` is expected: one that reads a text, a picture or frames."""

    def __init__(self, run: Run, card: Card) -> None:
        super().__init__()
        self._run, self._embedding = run, card.stacks[0].embedding
        # code that runs a model reads the device from its parameters
        self.place = nn.Parameter(torch.zeros(0), requires_grad=False)

    def forward(
        self,
        inputs: Tensor,
        mask: Tensor | None = None,
        types: Tensor | None = None,
        targets: Tensor | None = None,
        targets_mask: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Return the scores as a `TaskModel` does: (batch, labels), or those of tokens, all or at `positions`."""
        named = {self._embedding.INPUT: inputs.numpy()}
        if self._embedding.most_tokens is not None:
            real = torch.ones(inputs.shape[:2], dtype=torch.long) if mask is None else mask.long()
            named["attention_mask"] = real.numpy()
        if self._embedding.types:
            named["token_type_ids"] = (torch.zeros_like(inputs) if types is None else types).numpy()
        found = [torch.from_numpy(part.copy()) for part in self._run(named)]
        scores = found[0] if len(found) == 1 else torch.stack(found, -1)
        return scores if positions is None else scores[positions.bool()]
