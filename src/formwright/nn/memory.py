"""Measure the memory that a model takes, in a fresh process that holds nothing else.

Only the sizes of weights count, so the fresh process builds the model of the same card with weights of its own. The
peak is Linux's `VmHWM`, reset once the libraries are loaded; what `getrusage` gives would include the parent process.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

import formwright
from formwright.arch.card import Card
from formwright.nn.build import build, skeleton
from formwright.nn.deploy.interface import Inputs, NamedModel
from formwright.nn.deploy.runtimes import Arrays, load_library, open_file
from formwright.nn.settings import Settings
from formwright.nn.task_model import HeadSpec, TaskModel
from formwright.nn.transformer import Transformer

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
_SOURCE = Path(formwright.__file__).parents[1]


def peak_memory_of_model(model: TaskModel | Transformer, inputs: Inputs, threads: int) -> float | None:
    """Return the megabytes that building and running a model takes; None where the system does not tell."""
    transformer, head = (model.transformer, model.spec) if isinstance(model, TaskModel) else (model, None)
    job = {"card": transformer.card.to_json(), "settings": asdict(transformer.settings)}
    return _in_fresh_process(job | {"head": asdict(head) if head is not None else None}, inputs, threads)


def peak_memory_of_file(path: Path, inputs: Inputs, threads: int) -> float | None:
    """Return the megabytes that loading and running an exported file takes; None where the system does not tell."""
    return _in_fresh_process({"file": str(path)}, inputs, threads)


def _in_fresh_process(job: dict[str, Any], inputs: Inputs, threads: int) -> float | None:
    if not os.access(_RESET, os.W_OK):
        return None
    with tempfile.TemporaryDirectory() as folder:
        arrays = Path(folder) / "inputs.npz"
        named: dict[str, Any] = {name: tensor.numpy() for name, tensor in inputs.items()}
        np.savez(arrays, **named)
        done = subprocess.run(
            [sys.executable, "-m", "formwright.nn.memory"],
            input=json.dumps({**job, "inputs": str(arrays), "threads": threads}),
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(_SOURCE), os.environ.get("PYTHONPATH", "")])},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"measuring memory failed:\n{done.stderr}")
    return float(done.stdout.splitlines()[-1])


def _main() -> None:
    """Read a job from standard input, do it, and print its peak above what the libraries took."""
    job = json.load(sys.stdin)
    torch.set_num_threads(job["threads"])
    with np.load(job["inputs"]) as arrays:
        inputs = dict(arrays)
    work = _file_work(Path(job["file"]), job["threads"]) if "file" in job else _model_work(job)
    before = _megabytes("VmRSS")
    _RESET.write_text(_RESET_PEAK)
    work(inputs)
    print(_megabytes("VmHWM") - before)


def _megabytes(field: str) -> float:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024 / 1e6


def _file_work(path: Path, threads: int) -> Callable[[Arrays], Any]:
    load_library(path)
    return lambda inputs: open_file(path, threads)(inputs)  # noqa: PLW0108  opening the file counts too


def _model_work(job: dict[str, Any]) -> Callable[[Arrays], Any]:
    card, settings = Card.from_json(job["card"]), Settings(**job["settings"])
    head = HeadSpec(**job["head"]) if job["head"] is not None else None
    skeleton(card, settings, head)  # loads what torch itself needs to build a model

    def work(inputs: Arrays) -> None:
        model = NamedModel(build(card, settings, head)).eval()
        with torch.inference_mode():
            model(**{name: torch.from_numpy(array) for name, array in inputs.items()})

    return work


if __name__ == "__main__":
    _main()
