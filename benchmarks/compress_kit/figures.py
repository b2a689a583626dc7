"""The front of a task as a picture, drawn from what is kept in the folder of results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from charts import Line, chart

from compress_kit.bench import SHARES
from compress_kit.intervals import NAMES, fair_table, references

ARMS = {
    "network-first-order-automatic-5": "formwright compress",
    "random": "random sub-networks",
    "front-torch-pruning-magnitude": "Torch-Pruning, magnitude",
    "front-torch-pruning-taylor": "Torch-Pruning, Taylor",
    "front-fewer-layers": "fewer layers",
}
MACS = "MACs, % of the teacher's"
_SCORES = {"test": "test score", "further": "score on further rows"}
Kept = Mapping[str, Any]


def kept_results(folder: Path) -> list[Kept]:
    """Read the arms of every seed of a task that has a teacher; refuse seeds of different settings."""
    seeds = sorted(path.parent for path in folder.glob("seed-*/arms") if (path / "teacher.json").is_file())
    settings = [json.loads((seed / "setting.json").read_text(encoding="utf-8")) | {"seed": None} for seed in seeds]
    if any(one != settings[0] for one in settings):
        raise SystemExit(f"{folder} holds seeds of different settings, whose mean says nothing")
    return [
        {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((seed / "arms").glob("*.json"))}
        for seed in seeds
    ]


def front(task: str, seeds: Sequence[Kept]) -> str:
    """Draw scores over MACs: the mean of the seeds, with a band from the worst to the best of them.

    Where all seeds were judged on further rows, scores are of these: there are more of them than test rows.
    """
    split = "further" if all(seed["teacher"].get("further") is not None for seed in seeds) else "test"
    lines = [_teacher([seed["teacher"][split] for seed in seeds])]
    for arm, name in ARMS.items():
        rows = [seed[arm]["at"] for seed in seeds if arm in seed]
        line = _line(name, rows, split)
        lines += [] if line is None else [line]
    number = f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}"
    lowest = min(min([*line.y, *line.low]) for line in lines)
    edge = min(lowest, 0.9 * lines[0].y[0])  # differences of a point shall not look like a gulf
    title = f"Smaller models for {task}, {number}"
    return chart(title, lines, MACS, _SCORES[split], y_from=edge)


def fair_front(task: str, folders: Sequence[Path]) -> str:
    """Draw the comparison of equal processor time: scores on held-out rows, with their 95 % intervals as bands."""
    teacher = references(folders)["teacher"]
    lines = [_teacher(teacher["seeds"])]
    for arm, by_share in fair_table(folders).items():
        rows = sorted(by_share.values(), key=lambda row: np.mean(row["macs"]))
        low, high = zip(*(row["interval"] for row in rows), strict=True)
        across, scores = [100 * float(np.mean(row["macs"])) for row in rows], [row["score"] for row in rows]
        lines.append(Line(NAMES[arm], across, scores, low, high))
    title = f"Smaller models for {task}, equal processor time, seeds: {len(folders)}"
    edge = min(min([*line.y, *line.low]) for line in lines)
    return chart(title, lines, MACS, "accuracy on held-out rows", y_from=edge)


def _teacher(scores: Sequence[float]) -> Line:
    mean = float(np.mean(scores))
    return Line("teacher", [0, 100], [mean, mean], dashed=True)


def _line(name: str, rows: Sequence[Kept], split: str) -> Line | None:
    names = [f"{share:.0%}" for share in sorted(SHARES)]
    found = [[row[at] for row in rows if at in row and row[at].get(split) is not None] for at in names]
    points = [
        (100 * np.mean([one["macs"] for one in some]), [one[split] for one in some]) for some in found if len(some)
    ]
    if not points:
        return None
    across, scores = [float(at) for at, _ in points], [values for _, values in points]
    return Line(name, across, [float(np.mean(s)) for s in scores], [min(s) for s in scores], [max(s) for s in scores])
