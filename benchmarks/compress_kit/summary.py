"""What the seeds of a task have in common: the mean and the range of every arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from compress_kit.bench import SPLITS

Kept = Mapping[str, Any]


def summary(seeds: Sequence[Kept]) -> dict[str, dict[str, list[float]]]:
    """List by arm, and by what was scored, the numbers of the seeds that have them."""
    found: dict[str, dict[str, list[float]]] = {}
    for seed in seeds:
        for arm, row in seed.items():
            for what, value in _numbers(row).items():
                found.setdefault(arm, {}).setdefault(what, []).append(value)
    return found


def lines(found: Mapping[str, Mapping[str, Sequence[float]]]) -> list[str]:
    """Write a line for each arm and number: the mean, and from where to where the seeds reach."""
    return [
        f"  {arm} {what}: {np.mean(values):.4f} ({min(values):.4f} to {max(values):.4f}; seeds: {len(values)})"
        for arm, numbers in found.items()
        for what, values in numbers.items()
    ]


def _numbers(row: Kept) -> dict[str, float]:
    """Pick the numbers of an arm: scores of its models with their hypervolumes, or what it measured by name."""
    found = {split: row.get(split) for split in SPLITS}
    for share, one in row.get("at", {}).items():
        found |= {f"{share} {split}": one.get(split) for split in SPLITS}
    volumes = row.get("hypervolume")
    found |= {f"hypervolume {split}": volumes.get(split) for split in SPLITS} if isinstance(volumes, Mapping) else {}
    for name, one in row.items():
        if name not in {"at", "hypervolume"} and isinstance(one, Mapping):
            found |= {f"{name} {what}": value for what, value in one.items() if isinstance(value, int | float)}
    return {name: float(value) for name, value in found.items() if value is not None}
