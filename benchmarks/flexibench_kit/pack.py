"""From the lines of the runs to the packed table."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

import formwright
from formwright.evaluate.benchmark import PREFIX, ScoreTable, prefix
from formwright.nn.measurement import cpu_name

Row = dict[str, Any]


def packed(rows: Sequence[Row], facts: Row, seeds: Sequence[int], latency_ms: np.ndarray, metric: str) -> ScoreTable:
    """Make the table of all designs that were run with the first seed.

    `latency_ms` has a number for each design of the space. The noise is known of designs run with every seed.
    """
    found = {(row["index"], row["seed"]): row for row in rows}
    index = sorted(design for design, seed in found if seed == seeds[0])
    first = [found[design, seeds[0]] for design in index]
    noisy = [place for place, design in enumerate(index) if all((design, seed) in found for seed in seeds)]
    marks = len(facts["marks"])

    def scores(split: str, chosen: Sequence[Row]) -> np.ndarray:
        failed = [np.nan] * marks
        found = [row[split][metric] if split in row else failed for row in chosen]
        return np.array(found, np.float32).reshape(len(chosen), marks)

    def noise(split: str) -> np.ndarray:
        others = [found[index[place], seed] for place in noisy for seed in seeds[1:]]
        return scores(split, others).reshape(len(noisy), len(seeds) - 1, marks)

    return ScoreTable(
        {**facts, "seeds": list(seeds), **made_with()},
        np.array(index, np.uint32),
        np.array([prefix(row["digest"]) for row in first], np.uint64),
        scores("validation", first),
        scores("test", first),
        np.array([row["params"] for row in first], np.int64),
        np.array([row["macs"] for row in first], np.int64),
        latency_ms[index].astype(np.float32),
        np.array([row["seconds"] for row in first], np.float32),
        np.array(noisy, np.uint32),
        noise("validation"),
        noise("test"),
    )


def unpacked(table: ScoreTable) -> list[Row]:
    """Give the runs of a table as the rows that `packed` makes it of, with the first digits of their digests."""
    metric = table.facts["objective"].split(":")[0]
    seeds = table.facts["seeds"]

    def row(place: int, seed: int, validation: np.ndarray, test: np.ndarray) -> Row:
        costs = {name: getattr(table, name)[place].item() for name in ("params", "macs", "seconds")}
        found = {
            "index": int(table.index[place]),
            "digest": f"{table.digests[place]:0{PREFIX}x}",
            "seed": seed,
            **costs,
        }
        if np.isnan(validation).any():
            return {**found, "failure": "see where the table was made"}
        return {**found, "validation": {metric: validation.tolist()}, "test": {metric: test.tolist()}}

    first = [row(place, seeds[0], table.validation[place], table.test[place]) for place in range(len(table))]
    others = [
        row(int(place), seed, table.noise_validation[number, column], table.noise_test[number, column])
        for number, place in enumerate(table.noise_rows)
        for column, seed in enumerate(seeds[1:])
    ]
    return first + others


def made_with() -> Row:
    versions = {"formwright": formwright.__version__, "torch": torch.__version__, "python": platform.python_version()}
    return {"versions": versions, "processor": cpu_name()}
