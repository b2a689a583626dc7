"""Drawings of the summary."""

from __future__ import annotations

from typing import Any

import numpy as np
from charts import Line, chart

from autobert_zero_kit.runs import Row


def losses(rows: list[Row]) -> str:
    """Draw the loss on hidden words over the steps of pretraining, on average, with its 90 % range over designs."""
    lines = [_band(way, rows[0]["marks"], [row[way] for row in rows]) for way in ("scratch", "inherited")]
    return chart("Pretraining with and without shared weights", lines, "steps", "loss on validation text")


def ranks(points: np.ndarray) -> str:
    """Draw short scores over long ones; `points` has a row of `RANKED` for each design."""
    inherited, scratch, _, long = points.T.tolist()
    lines = [Line("short, inherited", long, inherited, dots=True), Line("short, scratch", long, scratch, dots=True)]
    return chart("Short scores and long ones", lines, "score after long training", "score after short training")


def searches(curves: dict[str, list[list[float]]]) -> str:
    """Draw the best score so far over the trials, averaged over the seeds, with their range."""
    trials = list(range(1, 1 + len(next(iter(curves.values()))[0])))
    lines = [_band(name, trials, found, dashed=name == "random") for name, found in curves.items()]
    return chart("Best score so far", lines, "trials", "validation score in the search")


def uniformity(measured: dict[str, dict[str, list[float]]], which: str, title: str) -> str:
    """Draw one measure over the layers, for each design that has it."""
    there = {name: found[which] for name, found in measured.items() if found}
    lines = [Line(name, list(range(1, 1 + len(found))), found) for name, found in there.items()]
    return chart(title, lines, "layer", title.lower())


def _band(name: str, x: list[int], found: list[list[float]], **rest: Any) -> Line:
    low, middle, high = np.quantile(found, 0.05, axis=0), np.mean(found, axis=0), np.quantile(found, 0.95, axis=0)
    return Line(name, x, middle.tolist(), low.tolist(), high.tolist(), **rest)
