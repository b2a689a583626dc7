"""The drawing of real searches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from charts import Line, chart

from evolved_kit.races import WAYS
from evolved_kit.summaries import Row

NAMES = {
    "hurdles": "hurdles",
    "fixed-short": "short trainings only",
    "fixed-full": "whole trainings only",
    "halving": "halving",
}


def races(rows: Sequence[Row]) -> str:
    """Draw the perplexity of what each way would choose over the steps spent: the mean of the seeds, and their range.

    Steps at which a search has no choice yet, or one whose whole training failed, are left out.
    """
    found = {way: [dict(row["curve"]) for row in rows if row["unit"][2] == way] for way in WAYS}
    lines = [_line(NAMES[way], curves) for way, curves in found.items() if curves]
    title = "What a search would choose after a number of steps"
    return chart(title, lines, "training steps in all", "perplexity after a whole training")


def _line(name: str, curves: Sequence[dict[float, float | None]]) -> Line:
    steps = [step for step in curves[0] if all(curve.get(step) is not None for curve in curves)]
    values = np.array([[curve[step] for step in steps] for curve in curves], dtype=float)
    low, high = values.min(axis=0).tolist(), values.max(axis=0).tolist()
    return Line(name, steps, values.mean(axis=0).tolist(), low, high)
