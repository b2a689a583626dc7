"""Drawings of the facts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from charts import Line, chart

from nas_bert_kit.students import FOUND
from nas_bert_kit.summary import Facts, better_bert


def figures(found: Mapping[str, Any]) -> dict[str, str]:
    """Draw what the parts that are there found, by the name of each drawing."""
    drawn = {"tau": sums(found["seeds"], found["tau"])} if "tau" in found else {}
    return drawn | ({"tasks": gaps(found["tasks"])} if "tasks" in found else {})


def sums(seeds: Sequence[int], facts: Sequence[Facts]) -> str:
    """Draw how far whole students are from the teacher over the sum of their blocks' losses, seed by seed."""
    clouds = [np.transpose(one["points"]).tolist() for one in facts]
    lines = [Line(f"seed {seed}", *cloud, dots=True) for seed, cloud in zip(seeds, clouds, strict=True)]
    title = "Whole students, and what their blocks promised"
    return chart(title, lines, "sum of the losses of embedding and blocks", "distance from the teacher")


def gaps(tasks: Mapping[str, Facts]) -> str:
    """Draw by how much found chains are ahead of the better BERT's shape: the mean of the seeds, and their range.

    Fresh ones begin as their rivals do; dashed ones have the weights of their blocks.
    """
    lines = [gap(task, facts["sizes"].values(), arm) for task, facts in tasks.items() for arm in FOUND]
    level = Line("the better BERT's shape", [*lines[0].x], [0.0] * len(lines[0].x))
    return chart("Found chains against BERT's shape", [*lines, level], "million parameters", "score ahead of BERT's")


def gap(task: str, sizes: Collection[Facts], arm: str) -> Line:
    """Give the line of one arm, from the smallest size to the largest."""
    ordered = sorted(sizes, key=lambda size: float(np.mean(size[arm]["params"])))
    ahead = np.array([np.subtract(size[arm]["scores"], size[better_bert(size)]["scores"]) for size in ordered])
    millions = [float(np.mean(size[arm]["params"])) / 1e6 for size in ordered]
    low, middle, high = (found.tolist() for found in (ahead.min(axis=1), ahead.mean(axis=1), ahead.max(axis=1)))
    return Line(f"{task}, {arm}", millions, middle, low, high, dashed=arm == "found")
