"""The Evolved Transformer's cells against the Transformer's layers, with equally many parameters."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from formwright.arch.card import Card
from formwright.cost import params
from formwright.pipeline.task_choice import TrainingChoice
from formwright.space.zoo import translation
from formwright.tasks import load_task
from formwright.tasks.task import shortened
from formwright.train.fit import fit, fresh_model
from formwright.train.prepare import prepare

WIDTH, HEADS, VOCABULARY = 64, 4, 2_000
TASKS = ("multi30k", "wikitext-2")
DESIGNS = ("evolved", "transformer")


def evolved(task: str) -> Card:
    """Give the published cells, once each."""
    if task == "wikitext-2":
        return translation.language_model(WIDTH, (translation.writer_cell(WIDTH, HEADS),), VOCABULARY)
    return translation.model(
        WIDTH, (translation.encoder_cell(WIDTH, HEADS),), (translation.decoder_cell(WIDTH, HEADS),), VOCABULARY
    )


@cache
def plain(task: str) -> Card:
    """Give the Transformer of two layers for each cell whose feed-forward width makes it as large as the cells."""
    wanted = params(evolved(task))
    return min((_layers(task, inner) for inner in range(32, 1024, 4)), key=lambda card: abs(params(card) - wanted))


def _layers(task: str, inner: int) -> Card:
    below = translation.layer(WIDTH, HEADS, inner)
    if task == "wikitext-2":
        return translation.language_model(WIDTH, (below,) * 2, VOCABULARY)
    return translation.model(WIDTH, (below,) * 2, (translation.attending(below),) * 2, VOCABULARY)


MAKERS: dict[str, Callable[[str], Card]] = {"evolved": evolved, "transformer": plain}


def measure(
    data: Path, training: TrainingChoice, unit: tuple[str, str, int], rows: int | None = None
) -> dict[str, Any]:
    """Train one design on one task with one seed, and judge it on the validation rows."""
    task_name, design, seed = unit
    card, task = MAKERS[design](task_name), load_task(task_name, data)
    task = task if rows is None else shortened(task, rows)
    began = time.process_time()
    made = training.make()
    made = replace(made, recipe=replace(made.recipe, seed=seed))
    prepared = prepare(task, card, training.length)
    trained = fit(fresh_model(card, prepared, made), prepared, made)
    return {
        "params": params(card),
        "metrics": dict(trained.metrics),
        "loss": sum(trained.losses[-20:]) / len(trained.losses[-20:]),
        "cpu_s": round(time.process_time() - began, 1),
    }
