"""Measure how long a model takes on this machine, in torch or in another runtime."""

import platform
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.nn.deploy import Kind, Runtime, export, open_file
from formwright.nn.deploy.interface import Inputs, NamedModel, card_of, random_inputs
from formwright.nn.hf.imported import load_folder
from formwright.nn.memory import peak_memory_of_file, peak_memory_of_model
from formwright.nn.task_model import TaskModel
from formwright.nn.timing import Run, Timing, TimingClock, timed_in_turns
from formwright.nn.transformer import Transformer

_KINDS: dict[str, Kind] = {"onnxruntime": "onnx", "openvino": "openvino"}
_RUNTIMES: dict[str, Runtime] = {".onnx": "onnxruntime", ".xml": "openvino"}


MOST_THREADS = 1024  # torch crashes when asked for very many
MOST_TOKENS = 1 << 24  # far beyond what fits into memory as activations


@dataclass(frozen=True)
class TimingSettings:
    """What to measure: batch size, tokens per sentence, threads, runs, and the device of torch."""

    batch: int = 1
    length: int = 128
    threads: int = 1
    runs: int = 50
    warmup: int = 5
    device: str = "cpu"

    def __post_init__(self) -> None:
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
    """Milliseconds of one forward pass: of the quietest of several windows, and the middle 90 % of all runs.

    `median_ms` estimates the latency on an idle machine; `busy` says whether the machine had other work. `spread` and
    `waited` are those of `Timing`. `peak_memory_mb` (10^6 bytes) is the peak memory of weights and activations in a new
    process, without libraries; None if not requested, not on the CPU, or not reported by the system.
    """

    median_ms: float
    low_ms: float
    high_ms: float
    spread: float
    waited: float | None
    busy: bool
    runs: int
    threads: int
    runtime: Runtime
    device: str
    cpu: str
    peak_memory_mb: float | None


@dataclass(frozen=True)
class ExportedFile:
    """A file that `export` wrote, and the design in it."""

    path: Path
    card: Card


@dataclass(frozen=True)
class ModelFolder:
    """A folder that `save_pretrained_folder` wrote; it is read for each window, so that many fit into memory."""

    path: Path


Measurable = TaskModel | Transformer | ExportedFile | ModelFolder


def measure(
    model: TaskModel | Transformer, trial: TimingSettings | None = None, runtime: Runtime = "torch", memory: bool = True
) -> Latency:
    """Measure a model on random sentences without padding; other runtimes than torch run an export of it.

    `memory` also measures the peak memory, which takes a few seconds more.
    """
    trial = trial or TimingSettings()
    if runtime != "torch":
        inputs_of(card_of(model), trial)  # refuses what the design cannot read before it is exported
        with tempfile.TemporaryDirectory() as folder:
            path = export(model, _KINDS[runtime], Path(folder)).path
            return measure_file(path, card_of(model), trial, memory)
    return measure_in_turns([model], trial, memory)[0]


def measure_file(path: Path, card: Card, trial: TimingSettings, memory: bool = True) -> Latency:
    """Measure an exported file of a design, in the runtime that it was written for."""
    return measure_in_turns([ExportedFile(path, card)], trial, memory)[0]


def measure_in_turns(
    models: Sequence[Measurable], trial: TimingSettings, memory: bool = False, clock: TimingClock | None = None
) -> list[Latency]:
    """Measure models that are to be compared: in turns, so that a busy time falls on all of them alike."""
    on_cpu = trial.device == "cpu"
    clock = clock or (TimingClock.of(trial.threads) if on_cpu else TimingClock())
    timings = timed_in_turns([partial(_runnable, model, trial) for model in models], trial.runs, trial.warmup, clock)
    peaks = [_peak(model, trial) if memory and on_cpu else None for model in models]
    return [_latency(*each, trial) for each in zip(models, timings, peaks, strict=True)]


def _latency(model: Measurable, timing: Timing, peak: float | None, trial: TimingSettings) -> Latency:
    runtime: Runtime = _RUNTIMES[model.path.suffix] if isinstance(model, ExportedFile) else "torch"
    times = (timing.median_ms, timing.low_ms, timing.high_ms, timing.spread)
    measured = (timing.waited, timing.busy, timing.runs, trial.threads)
    return Latency(*times, *measured, runtime, trial.device, cpu_name(), peak)


def inputs_of(card: Card, trial: TimingSettings) -> Inputs:
    """Draw the sentences that a trial measures a design on."""
    return random_inputs(card, trial.batch, trial.length, torch.Generator().manual_seed(0))


def _peak(model: Measurable, trial: TimingSettings) -> float | None:
    if isinstance(model, ExportedFile):
        return peak_memory_of_file(model.path, inputs_of(model.card, trial), trial.threads)
    model = load_folder(model.path) if isinstance(model, ModelFolder) else model
    return peak_memory_of_model(model, inputs_of(card_of(model), trial), trial.threads)


@contextmanager
def _runnable(model: Measurable, trial: TimingSettings) -> Iterator[Run]:
    """Return what runs a model once, on the trial's threads; leave the model and torch as they were."""
    if isinstance(model, ExportedFile):
        inputs = inputs_of(model.card, trial)
        run = open_file(model.path, trial.threads)
        arrays = {name: tensor.numpy() for name, tensor in inputs.items()}
        yield lambda: run(arrays)
        return
    model = load_folder(model.path) if isinstance(model, ModelFolder) else model
    inputs = inputs_of(card_of(model), trial)
    before, training, place = torch.get_num_threads(), model.training, next(model.parameters()).device
    torch.set_num_threads(trial.threads)
    device = torch.device(trial.device)
    try:
        with torch.inference_mode():
            named = NamedModel(model.to(device)).eval()
            there = {name: tensor.to(device) for name, tensor in inputs.items()}
            yield lambda: _finished(named(**there), device)
    finally:
        model.to(place).train(training)
        torch.set_num_threads(before)


def _finished(result: Any, device: torch.device) -> Any:
    """Wait until a device has finished."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
    return result


def cpu_name() -> str:
    """Name the processor of this machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
