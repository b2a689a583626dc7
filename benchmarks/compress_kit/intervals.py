"""The fair comparison as a table: scores on held-out rows with intervals, and differences to ours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compress_kit.bench import SHARES
from compress_kit.fair import OURS, RANDOM
from formwright.core.rng import derive
from formwright.tasks.bootstrap import intervals

NAMES = {
    OURS: "formwright compress",
    RANDOM: "random sub-networks of ours",
    "fair-fewer-layers": "fewer layers",
    "fair-torch-pruning-taylor": "Torch-Pruning, Taylor",
    "fair-torch-pruning-magnitude": "Torch-Pruning, magnitude",
}
Floats = NDArray[np.float64]


def fair_table(folders: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Compare the arms of the seeds in some folders, by arm and share; the rows are the same for all seeds.

    Scores are means over the seeds that have the arm, and differences over those that have ours too.
    """
    found: dict[str, dict[str, Any]] = {}
    for arm in NAMES:
        for share in SHARES:
            name = f"{share:.0%}"
            right = {folder: one for folder in folders if (one := _right(folder, arm, name)) is not None}
            if not right:
                continue
            mine = {folder: one for folder in right if (one := _right(folder, OURS, name)) is not None}
            row = _scored(right) | {"macs": [_kept(folder, arm)["at"][name]["macs"] for folder in right]}
            if arm != OURS and mine:
                ahead = np.mean([mine[folder] - right[folder] for folder in mine], axis=0)
                row |= {"ours ahead by": float(ahead.mean()), "interval of that": interval(ahead)}
            found.setdefault(arm, {})[name] = row
    return found


def references(folders: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Score the teacher, and the label that is most frequent among the training rows."""
    names = {"majority class": "majority", "teacher": "teacher"}
    return {
        told: _scored({folder: np.load(folder / "right" / f"{name}.npy").astype(float) for folder in folders})
        for told, name in names.items()
    }


def fair_folders(results: Path) -> list[Path]:
    """List the folders of a task's seeds that have our arm of the fair comparison."""
    return sorted(path.parents[1] for path in results.glob(f"seed-*/arms/{OURS}.json"))


def interval(values: Floats) -> list[float]:
    """Give the 95 % interval of the mean of some rows, by bootstrap."""
    return list(intervals({"accuracy": values[:, None]}, derive(0, "rows"))["accuracy"])


def markdown(found: Mapping[str, Mapping[str, Any]], told: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the table: scores with intervals, and below each how far ours is ahead of it."""
    shares = [f"{share:.0%}" for share in SHARES]
    lines = ["| | seeds | " + " | ".join(shares) + " |", "|---" * (len(shares) + 2) + "|"]
    for name, row in told.items():
        lines.append(f"| {name} | {len(row['seeds'])} | {_score(row)} |" + " |" * (len(shares) - 1))
    for arm, row in found.items():
        seeds = max(len(one["seeds"]) for one in row.values())
        lines.append(f"| {NAMES[arm]} | {seeds} | " + " | ".join(_score(row[share]) for share in shares) + " |")
        if arm != OURS:
            lines.append("| ... ours ahead by | | " + " | ".join(_ahead(row[share]) for share in shares) + " |")
    return "\n".join(lines)


def _score(row: Mapping[str, Any]) -> str:
    low, high = row["interval"]
    return f"{row['score']:.3f} [{low:.3f}, {high:.3f}]"


def _ahead(row: Mapping[str, Any]) -> str:
    low, high = (100 * end for end in row["interval of that"])
    return f"{100 * row['ours ahead by']:+.1f} [{low:+.1f}, {high:+.1f}]"


def _scored(right: Mapping[Path, Floats]) -> dict[str, Any]:
    mean = np.mean(list(right.values()), axis=0)
    return {
        "score": float(mean.mean()),
        "interval": interval(mean),
        "seeds": [float(one.mean()) for one in right.values()],
    }


def _right(folder: Path, arm: str, share: str) -> Floats | None:
    """Read which held-out rows the model of an arm answers right; of several models, how many of them do."""
    kept = _kept(folder, arm)
    if kept is None or share not in kept["at"]:
        return None
    names = kept["at"][share]["answers"]
    files = [names] if isinstance(names, str) else names
    return np.mean([np.load(folder / "right" / f"{name}.npy") for name in files], axis=0)


def _kept(folder: Path, arm: str) -> Any:
    path = folder / "arms" / f"{arm}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
