"""Drawings of the facts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from charts import Line, chart

from nas_bert_kit.summary import Facts


def figures(found: Mapping[str, Any]) -> dict[str, str]:
    """Draw what the parts that are there found, by the name of each drawing."""
    drawn = {"tau": sums(found["seeds"], found["tau"])} if "tau" in found else {}
    return drawn | ({"tasks": gaps(found["tasks"], "found")} if "tasks" in found else {})


def sums(seeds: Sequence[int], facts: Sequence[Facts]) -> str:
    """Draw how far whole students are from the teacher over the sum of their blocks' losses, seed by seed."""
    clouds = [np.transpose(one["points"]).tolist() for one in facts]
    lines = [Line(f"seed {seed}", *cloud, dots=True) for seed, cloud in zip(seeds, clouds, strict=True)]
    title = "Whole students, and what their blocks promised"
    return chart(title, lines, "sum of the losses of embedding and blocks", "distance from the teacher")


def gaps(tasks: Mapping[str, Facts], arm: str) -> str:
    """Draw by how much an arm is ahead of BERT's shape over the size: the mean of the seeds, and their range."""
    lines = [_gap(task, facts["sizes"].values(), arm) for task, facts in tasks.items()]
    level = Line("BERT's shape", [*lines[0].x], [0.0] * len(lines[0].x), dashed=True)
    return chart("Found chains against BERT's shape", [*lines, level], "million parameters", "score ahead of BERT's")


def _gap(task: str, sizes: Collection[Facts], arm: str) -> Line:
    ahead = np.array([np.subtract(size[arm]["scores"], size["bert"]["scores"]) for size in sizes])
    millions = [size["bert"]["params"] / 1e6 for size in sizes]
    return Line(task, millions, ahead.mean(axis=1).tolist(), ahead.min(axis=1).tolist(), ahead.max(axis=1).tolist())
