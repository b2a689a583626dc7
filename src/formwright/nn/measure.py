"""Measure how long a model takes on this machine, in torch or in another runtime."""

import gc
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.nn.deploy import Kind, Runtime, export, open_file
from formwright.nn.deploy.interface import Inputs, NamedModel, card_of, random_inputs
from formwright.nn.memory import peak_memory_of_file, peak_memory_of_model
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Transformer

_KINDS: dict[str, Kind] = {"onnxruntime": "onnx", "openvino": "openvino"}
_RUNTIMES: dict[str, Runtime] = {".onnx": "onnxruntime", ".xml": "openvino"}


MOST_THREADS = 1024  # torch crashes when asked for very many
MOST_TOKENS = 1 << 24  # far beyond what fits into memory as activations


@dataclass(frozen=True)
class Trial:
    """Say what to measure: sentences in a batch, tokens in a sentence, and how often."""

    batch: int = 1
    length: int = 128
    threads: int = 1
    runs: int = 50
    warmup: int = 5

    def __post_init__(self) -> None:
        """Refuse a trial that measures nothing."""
        if self.threads < 1 or self.runs < 2 or self.warmup < 0:
            raise IllegalInput(
                f"a measurement takes at least 1 thread, 2 runs and 0 warm-up runs, not {self.threads}, {self.runs} "
                f"and {self.warmup}"
            )
        if self.threads > MOST_THREADS or self.batch * self.length > MOST_TOKENS:
            raise IllegalInput(
                f"a measurement takes at most {MOST_THREADS} threads and {MOST_TOKENS:,} tokens in a batch, not "
                f"{self.threads} and {self.batch * self.length:,}"
            )


@dataclass(frozen=True)
class Latency:
    """Milliseconds of one forward pass: the median and, from `low_ms` to `high_ms`, the middle 90 % of the runs.

    `drift` is how much slower the second half of the runs was than the first, as a fraction; far from 0, the machine
    was busy with something else. `peak_memory_mb` (10^6 bytes) is what weights and activations took at most in a fresh
    process, libraries aside; None where it was not asked for or the system does not tell.
    """

    median_ms: float
    low_ms: float
    high_ms: float
    drift: float
    runs: int
    threads: int
    runtime: Runtime
    cpu: str
    peak_memory_mb: float | None


def measure(
    model: TaskModel | Transformer,
    batch: int = 1,
    length: int = 128,
    threads: int = 1,
    runtime: Runtime = "torch",
    runs: int = 50,
    warmup: int = 5,
    memory: bool = True,
) -> Latency:
    """Measure a model on random sentences without padding; other runtimes than torch run an export of it.

    `memory` also measures the peak memory, which takes a few seconds more.
    """
    trial = Trial(batch, length, threads, runs, warmup)
    inputs = _inputs(card_of(model), trial)
    if runtime != "torch":
        with tempfile.TemporaryDirectory() as folder:
            path = export(model, _KINDS[runtime], Path(folder)).path
            return measure_file(path, card_of(model), trial, memory)
    with _running(model, threads):
        named = NamedModel(model).eval()
        times = _timed(lambda: named(**inputs), trial)
    return _latency(times, trial, runtime, peak_memory_of_model(model, inputs, threads) if memory else None)


def measure_file(path: Path, card: Card, trial: Trial, memory: bool = True) -> Latency:
    """Measure an exported file of a design, in the runtime that it was written for."""
    inputs = _inputs(card, trial)
    arrays = {name: tensor.numpy() for name, tensor in inputs.items()}
    run = open_file(path, trial.threads)
    times = _timed(lambda: run(arrays), trial)
    peak = peak_memory_of_file(path, inputs, trial.threads) if memory else None
    return _latency(times, trial, _RUNTIMES[path.suffix], peak)


def _inputs(card: Card, trial: Trial) -> Inputs:
    return random_inputs(card, trial.batch, trial.length, torch.Generator().manual_seed(0))


@contextmanager
def _running(model: TaskModel | Transformer, threads: int) -> Iterator[None]:
    """Evaluate without gradients on so many threads, and leave model and torch as they were."""
    before, training = torch.get_num_threads(), model.training
    torch.set_num_threads(threads)
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(training)
        torch.set_num_threads(before)


def _timed(run: Callable[[], Any], trial: Trial) -> list[float]:
    """Give the milliseconds of each run after the warm-up; the garbage collector waits meanwhile."""
    for _ in range(trial.warmup):
        run()
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        times = []
        for _ in range(trial.runs):
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e3)
        return times
    finally:
        if collecting:
            gc.enable()


def _latency(times: list[float], trial: Trial, runtime: Runtime, peak: float | None) -> Latency:
    low, median, high = (float(value) for value in np.quantile(times, (0.05, 0.5, 0.95)))
    half = len(times) // 2
    drift = float(np.median(times[half:]) / np.median(times[:half])) - 1
    return Latency(median, low, high, drift, trial.runs, trial.threads, runtime, cpu_name(), peak)


def cpu_name() -> str:
    """Name the processor of this machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
