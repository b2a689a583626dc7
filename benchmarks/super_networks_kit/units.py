"""Finished units of work, one JSON line each, so that a benchmark that was stopped goes on."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

Row = dict[str, Any]
RESAMPLES, LEVEL = 2_000, 0.95


class Units:
    """The finished units of a folder by name."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._path = folder, folder / "units.jsonl"
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.is_file() else []
        self.rows: dict[str, Row] = {row.pop("unit"): row for line in lines if (row := _parsed(line))}

    def kept(self, name: str, make: Callable[[], Row]) -> Row:
        """Give a finished unit, or make and keep it."""
        if name not in self.rows:
            self.rows[name] = made = make()
            with self._path.open("a", encoding="utf-8") as file:
                file.write("\n" * _is_torn(self._path) + json.dumps({"unit": name, **made}) + "\n")
            print(f"{name} is done", flush=True)
        return self.rows[name]


def _parsed(line: str) -> Row:
    try:
        found: Row = json.loads(line)
    except ValueError:  # the line that was being written when the process was killed
        return {}
    return found


def _is_torn(path: Path) -> bool:
    content = path.read_bytes() if path.is_file() else b""
    return bool(content) and not content.endswith(b"\n")


def tau(one: Any, other: Any) -> float:
    """Give Kendall's tau (b); 0 where one side does not differ at all, or there is nothing to order."""
    first, second = (np.sign(np.subtract.outer(side, side)) for side in (np.asarray(one), np.asarray(other)))
    size = float(np.sqrt(np.square(first).sum() * np.square(second).sum()))
    return float((first * second).sum()) / size if size else 0.0


def interval(found: float, sample: Sequence[float] | NDArray[np.float64]) -> list[float]:
    """Give a figure with the ends of its bootstrap interval."""
    return [found, *(float(end) for end in np.quantile(sample, ((1 - LEVEL) / 2, (1 + LEVEL) / 2)))]


def over_seeds(values: Sequence[float] | NDArray[np.float64]) -> list[float]:
    """Give the mean of a figure of several seeds with its interval by Student's t, which holds for few seeds."""
    values = np.asarray(values, float)
    wide = float(student.ppf((1 + LEVEL) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return [float(values.mean()), float(values.mean()) - wide, float(values.mean()) + wide]


def shown(found: Sequence[float], digits: int = 2) -> str:
    return f"{found[0]:.{digits}f} [{found[1]:.{digits}f}, {found[2]:.{digits}f}]"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
