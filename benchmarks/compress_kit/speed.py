"""Whether fewer multiply-accumulates save as much time: the delivered models in torch and in ONNX Runtime."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from compress_kit.bench import Bench, Row
from compress_kit.searching import Network
from formwright.arch.card import Card
from formwright.nn.deploy import export, open_file
from formwright.nn.measurement import TimingSettings, measure_file, measure_in_turns
from formwright.nn.task_model import TaskModel
from formwright.tasks.metrics import metric
from formwright.train.judge import batch_of

BATCHES = (1, 32)
_RUNS = 100


def speed(bench: Bench, network: Network, at: dict[str, Row]) -> Row:
    """Measure the teacher and the models at each share in turns, so that a busy moment falls on all of them.

    `yield` is the speed-up against the teacher as a share of what the MACs promise.
    """
    models = {"teacher": bench.teacher}
    models |= {share: network.weights.extracted(Card.from_json(row["card"])) for share, row in at.items()}
    times: dict[str, dict[int, float]] = {share: {} for share in models}
    for batch in BATCHES:
        found = measure_in_turns(list(models.values()), TimingSettings(batch, bench.length, runs=_RUNS))
        for share, latency in zip(models, found, strict=True):
            times[share][batch] = latency.median_ms
    found_at = {share: _facts(bench, models[share], times[share], times["teacher"]) for share in models}
    return found_at | {"int8": eight_bits(bench, models["50%"]) if "50%" in models else None}


def _facts(bench: Bench, model: TaskModel, times: dict[int, float], full: dict[int, float]) -> Row:
    share = bench.share(model.transformer.card)
    found: Row = {"macs": share}
    for batch in BATCHES:
        ms, whole = times[batch], full[batch]
        found |= {f"ms at {batch}": ms, f"time at {batch}": ms / whole, f"yield at {batch}": share * whole / ms}
    return found


def eight_bits(bench: Bench, model: TaskModel) -> Row:
    """Compare a model in ONNX Runtime with itself in 8 bits: validation score and milliseconds of one row."""
    found: dict[str, Any] = {}
    for name, int8 in (("float", False), ("int8", True)):
        with tempfile.TemporaryDirectory() as folder:
            path = export(model, "onnx", Path(folder), int8=int8).path
            trial = TimingSettings(length=bench.length, runs=100)
            found[f"{name} ms"] = measure_file(path, model.transformer.card, trial, memory=False).median_ms
            found[f"{name} score"] = _score(bench, path)
    return found


def _score(bench: Bench, path: Path) -> float:
    """Judge an exported file on validation."""
    prepared, run = bench.prepared, open_file(path, 1)
    part, answers, truth = prepared.validation, [], []
    for start in range(0, len(part.examples), 64):
        rows = np.arange(start, min(start + 64, len(part.examples)))
        batch = batch_of(prepared, part, rows)
        mask = np.ones_like(batch.inputs.numpy()) if batch.mask is None else batch.mask.numpy().astype(np.int64)
        given = {"input_ids": batch.inputs.numpy(), "attention_mask": mask}
        if batch.types is not None:
            given["token_type_ids"] = batch.types.numpy()
        answers.append(run(given)[0].argmax(-1))
        truth.append(batch.labels.numpy())
    return metric(prepared.task.metric).compute(np.concatenate(answers), np.concatenate(truth))
