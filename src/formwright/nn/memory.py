"""Measure the memory that a model takes, in a fresh process that holds nothing else.

Weights count by their size alone, so the fresh process builds the model of the same card with weights of its own.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"


def peak_memory_of_model(model: Any, inputs: Any, threads: int) -> float | None:
    """Give the megabytes of a torch model and one forward pass at their peak; None where the system does not tell."""
    transformer = getattr(model, "transformer", model)
    head = getattr(model, "spec", None)
    return _in_fresh_process(
        {
            "card": transformer.card.to_json(),
            "settings": asdict(transformer.settings),
            "head": asdict(head) if head is not None else None,
            "threads": threads,
        },
        inputs,
    )


def peak_memory_of_file(path: Path, inputs: Any, threads: int) -> float | None:
    """Give the megabytes of an exported file and one forward pass at their peak."""
    return _in_fresh_process({"file": str(path), "threads": threads}, inputs)


def _in_fresh_process(job: dict[str, Any], inputs: Any) -> float | None:
    if not os.access(_RESET, os.W_OK):
        return None
    with tempfile.TemporaryDirectory() as folder:
        arrays = Path(folder) / "inputs.npz"
        np.savez(arrays, **{name: tensor.numpy() for name, tensor in inputs.items()})
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            input=json.dumps({**job, "inputs": str(arrays)}),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"measuring memory failed:\n{done.stderr}")
    return float(done.stdout.splitlines()[-1])


def _megabytes(field: str) -> float:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024 / 1e6


def _main() -> None:
    """Read a job from standard input, do it, and print the peak above what the libraries took."""
    import torch

    job = json.load(sys.stdin)
    torch.set_num_threads(job["threads"])
    with np.load(job["inputs"]) as arrays:
        inputs = dict(arrays)
    work = _file_work(job) if "file" in job else _model_work(job)
    before = _megabytes("VmRSS")
    _RESET.write_text(_RESET_PEAK)
    work(inputs)
    print(_megabytes("VmHWM") - before)


def _file_work(job: dict[str, Any]) -> Any:
    from formwright.nn.deploy.runtimes import libraries, open_file

    path = Path(job["file"])
    libraries(path)
    return lambda inputs: open_file(path, job["threads"])(inputs)


def _model_work(job: dict[str, Any]) -> Any:
    import torch

    from formwright.arch.card import Card
    from formwright.nn.build import build
    from formwright.nn.deploy.interface import NamedModel
    from formwright.nn.heads import HeadSpec
    from formwright.nn.settings import Settings

    card, settings = Card.from_json(job["card"]), Settings(**job["settings"])
    head = HeadSpec(**job["head"]) if job["head"] is not None else None

    def work(inputs: Any) -> None:
        model = NamedModel(build(card, settings, head)).eval()
        with torch.inference_mode():
            model(**{name: torch.from_numpy(array) for name, array in inputs.items()})

    return work


if __name__ == "__main__":
    _main()
