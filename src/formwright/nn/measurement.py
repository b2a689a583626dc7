"""Measure how long a model takes on this machine, in torch or in another runtime, and how much memory."""

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import formwright
from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec
from formwright.core.errors import IllegalInput
from formwright.nn.build import build, skeleton
from formwright.nn.deploy import Kind, Runtime, export, open_file
from formwright.nn.deploy.interface import Inputs, NamedInputsModel, longest, random_inputs
from formwright.nn.deploy.runtimes import Arrays, load_library
from formwright.nn.generate import GenerationSettings, generate
from formwright.nn.hf.imported import load_folder
from formwright.nn.settings import Settings
from formwright.nn.task_model import TaskModel
from formwright.nn.timing import Run, TimingClock, timed_in_turns
from formwright.nn.transformer import Transformer

KINDS: dict[str, Kind] = {"onnxruntime": "onnx", "openvino": "openvino"}
_RUNTIMES: dict[str, Runtime] = {".onnx": "onnxruntime", ".xml": "openvino"}
_NO_CACHE = "writing is measured in torch: exported files have no cache of a decoder"
MOST_THREADS = 1024  # torch crashes when asked for very many
MOST_TOKENS = 1 << 24  # far beyond what fits into memory as activations


@dataclass(frozen=True)
class TimingSettings:
    """What to measure: batch size, tokens per sentence, threads, runs, and the device of torch.

    A run is one forward pass or, with `tokens`, reading the batch and writing that number of tokens with `beams` beams.
    """

    batch: int = 1
    length: int = 128
    threads: int = 1
    runs: int = 50
    warmup: int = 5
    device: str = "cpu"
    tokens: int = 0
    beams: int = 1

    def __post_init__(self) -> None:
        if self.tokens < 0 or self.beams < 1 or (self.beams > 1 and not self.tokens):
            raise IllegalInput(f"beams need at least 1 token to write: got tokens={self.tokens} and beams={self.beams}")
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
    """Milliseconds of one run: of the quietest of several windows, and the middle 90 % of all runs.

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
    if trial.tokens:
        return _measure_writing(model, trial, runtime)
    if runtime != "torch":
        inputs_of(model.card, trial)  # refuses what the design cannot read before it is exported
        with tempfile.TemporaryDirectory() as folder:
            path = export(model, KINDS[runtime], Path(folder)).path
            return measure_file(path, model.card, trial, memory)
    return measure_in_turns([model], trial, memory)[0]


def _measure_writing(model: TaskModel | Transformer, trial: TimingSettings, runtime: Runtime) -> Latency:
    """Measure how long a model reads and writes; what it writes depends on its weights, how long it takes does not."""
    card = model.card
    if runtime != "torch":
        raise IllegalInput(_NO_CACHE)
    if card.decoder is None:
        raise IllegalInput(f"a {card.family} design writes no text; only those with a decoder do")
    if trial.tokens > longest(card, trial.tokens):
        raise IllegalInput(
            f"{trial.tokens} tokens are too many: the design has positions for {longest(card, trial.tokens)}"
        )
    if isinstance(model, Transformer):
        spec = HeadSpec("causal-lm" if card.encoder is None else "seq2seq-lm")
        model = build(card, model.settings, spec)
    return measure_in_turns([model], trial)[0]


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
    peaks = [_peak_memory(model, trial) if memory and on_cpu else None for model in models]
    runtimes = [_RUNTIMES[one.path.suffix] if isinstance(one, ExportedFile) else "torch" for one in models]
    return [
        Latency(
            *(time.median_ms, time.low_ms, time.high_ms, time.spread, time.waited, time.busy, time.runs),
            *(trial.threads, runtime, trial.device, cpu_name(), peak),
        )
        for runtime, time, peak in zip(runtimes, timings, peaks, strict=True)
    ]


def inputs_of(card: Card, trial: TimingSettings) -> Inputs:
    return random_inputs(card, trial.batch, trial.length, torch.Generator().manual_seed(0))


@contextmanager
def _runnable(model: Measurable, trial: TimingSettings) -> Iterator[Run]:
    """Return what runs a model once, on the trial's threads; leave the model and torch as they were."""
    if isinstance(model, ExportedFile):
        if trial.tokens:
            raise IllegalInput(_NO_CACHE)
        inputs = inputs_of(model.card, trial)
        run = open_file(model.path, trial.threads)
        arrays = {name: tensor.numpy() for name, tensor in inputs.items()}
        yield lambda: run(arrays)
        return
    model = load_folder(model.path) if isinstance(model, ModelFolder) else model
    inputs = inputs_of(model.card, trial)
    before, training, place = torch.get_num_threads(), model.training, next(model.parameters()).device
    torch.set_num_threads(trial.threads)
    device = torch.device(trial.device)
    try:
        with torch.inference_mode():
            model.to(device).eval()
            there = {name: tensor.to(device) for name, tensor in inputs.items()}
            once = partial(_written, model, there, trial) if trial.tokens else partial(NamedInputsModel(model), **there)
            # a device has computed a result when it says so
            waits: dict[str, Callable[[], None]] = {"cuda": torch.cuda.synchronize, "mps": torch.mps.synchronize}
            finish = waits.get(device.type, lambda: None)
            yield lambda: (once(), finish())
    finally:
        model.to(place).train(training)
        torch.set_num_threads(before)


def _written(model: TaskModel | Transformer, inputs: Inputs, trial: TimingSettings) -> Any:
    # no token ends a text, so that all texts are as long
    assert isinstance(model, TaskModel)
    settings = GenerationSettings(begin=0, end=-1, length=trial.tokens, beams=trial.beams)
    return generate(model, inputs["input_ids"], inputs["attention_mask"], settings)


def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
_SOURCE = Path(formwright.__file__).parents[1]


def _peak_memory(model: Measurable, trial: TimingSettings) -> float | None:
    """Return the megabytes that building or loading a model and running it takes; None if the system does not say.

    It is measured in a new process that holds nothing else. Only the sizes of weights count, so the process builds the
    model of the same card with weights of its own. The peak is Linux's `VmHWM`, reset once the libraries are loaded;
    what `getrusage` gives would include the parent process.
    """
    if isinstance(model, ExportedFile):
        return _in_new_process({"file": str(model.path)}, inputs_of(model.card, trial), trial.threads)
    model = load_folder(model.path) if isinstance(model, ModelFolder) else model
    head = None if model.spec is None else asdict(model.spec)
    job = {"card": model.card.to_json(), "settings": asdict(model.settings), "head": head}
    return _in_new_process(job, inputs_of(model.card, trial), trial.threads)


def _in_new_process(job: dict[str, Any], inputs: Inputs, threads: int) -> float | None:
    if not os.access(_RESET, os.W_OK):
        return None
    with tempfile.TemporaryDirectory() as folder:
        arrays = Path(folder) / "inputs.npz"
        named: dict[str, Any] = {name: tensor.numpy() for name, tensor in inputs.items()}
        np.savez(arrays, **named)
        done = subprocess.run(
            [sys.executable, "-m", "formwright.nn.measurement"],
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
    if "file" in job:
        load_library(Path(job["file"]))
    work = partial(_run_file, job) if "file" in job else _model_work(job)
    before = _megabytes("VmRSS")
    _RESET.write_text(_RESET_PEAK)
    work(inputs)
    print(_megabytes("VmHWM") - before)


def _megabytes(field: str) -> float:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024 / 1e6


def _run_file(job: dict[str, Any], inputs: Arrays) -> None:
    open_file(Path(job["file"]), job["threads"])(inputs)


def _model_work(job: dict[str, Any]) -> Callable[[Arrays], Any]:
    card, settings = Card.from_json(job["card"]), Settings(**job["settings"])
    head = HeadSpec(**job["head"]) if job["head"] is not None else None
    skeleton(card, settings, head)  # loads what torch itself needs to build a model

    def work(inputs: Arrays) -> None:
        model = NamedInputsModel(build(card, settings, head)).eval()
        with torch.inference_mode():
            model(**{name: torch.from_numpy(array) for name, array in inputs.items()})

    return work


if __name__ == "__main__":
    _main()
