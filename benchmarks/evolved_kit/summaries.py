"""What the rows of each part come to, way by way and design by design."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evolved_kit.races import WAYS, steps_to

Row = dict[str, Any]
PARTS = ("cells", "table", "search")


def summary(rows: Sequence[Row]) -> Row:
    """Gather the rows of each part by what was compared, and list the units that failed."""
    done = [row for row in rows if "failed" not in row]
    found = {part: _SUMMARIES[part]([row for row in done if row["unit"][0] == part]) for part in PARTS}
    failed = {" ".join(row["unit"]): row["failed"] for row in rows if "failed" in row}
    return {**found, **({"failed": failed} if failed else {})}


def _cells(rows: Sequence[Row]) -> Row:
    found: Row = {}
    for row in sorted(rows, key=lambda row: row["unit"]):
        _, task, design, _ = row["unit"]
        entry = found.setdefault(f"{task}, {design}", {"params": row["params"], "scores": {}})
        for name, value in row["metrics"].items():
            entry["scores"].setdefault(name, []).append(value)
    for entry in found.values():
        entry["mean"] = {name: float(np.mean(values)) for name, values in entry["scores"].items()}
    return found


def _table(rows: Sequence[Row]) -> Row:
    found = {}
    for way in WAYS:
        own = [row for row in rows if row["unit"][2] == way]
        if own:  # a search that never got there has spent all its steps at least
            spent = [row["steps"] if row["steps_to_best"] is None else row["steps_to_best"] for row in own]
            found[way] = {
                "searches": len(own),
                "reached": sum(row["steps_to_best"] is not None for row in own) / len(own),
                "median_steps": float(np.median(spent)),
                "mean_rank": float(np.mean([row["rank"] for row in own])),
                "mean_score": float(np.mean([row["score"] for row in own])),
            }
    return found


def _search(rows: Sequence[Row]) -> Row:
    """Tell for each way the perplexity in the end, and after which steps it had, and kept, what the worst has then.

    A choice whose whole training failed, None, is worse than any, and is not the worst that others are compared with.
    """
    found: Row = {}
    for seed in sorted({row["unit"][3] for row in rows}):
        curves = {row["unit"][2]: row["curve"] for row in rows if row["unit"][3] == seed and row["curve"]}
        ends = [curve[-1][1] for curve in curves.values() if curve[-1][1] is not None]
        for way, curve in curves.items():
            entry = found.setdefault(way, {"perplexity": [], "steps_to_same": []})
            entry["perplexity"].append(curve[-1][1])
            good = ((steps, value is not None and value <= max(ends)) for steps, value in curve)
            entry["steps_to_same"].append(steps_to(good))
    return found


_SUMMARIES = {"cells": _cells, "table": _table, "search": _search}
