"""What is kept of an evaluation next to a delivered model: the task, its rows and the scores, and how sure they are.

With the folder and the original data file, the model can be scored again on the rows whose indices are listed here.
Test rows are listed by index only: `evaluate.final` alone opens them. A small file has the contribution of each row to
the scores, for paired comparisons of two models; without it, they are compared by their intervals alone.
"""

import io
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from formwright.core.files import write_file
from formwright.core.rng import derive
from formwright.tasks import text_columns
from formwright.tasks.bootstrap import Difference, Evidence, Majority, Tables, differences, intervals, sign_of
from formwright.tasks.kind import kind_of
from formwright.tasks.metrics import METRICS, metric
from formwright.tasks.span_windows import usual_overlap
from formwright.tasks.task import Task, contents
from formwright.train.judge import Judged, constant_baseline
from formwright.train.prepare import Prepared, PreparedRows

VERSION = 1
SPLITS = ("validation", "test")
_SAME = 1e-6  # tolerance between a score and that of its rows


def evaluation_of(
    prepared: Prepared,
    validation: Mapping[str, float],
    test: Mapping[str, float] | None = None,
    evidence: Mapping[str, Evidence] | None = None,
) -> dict[str, Any]:
    """Describe, as JSON data, how a model was evaluated; files are named without their folders.

    `evidence` has the confidence intervals of each split.
    """
    task, rows = prepared.task, prepared.validation.rows
    loading: dict[str, Any] = {"name": task.name, **task.load}  # without the folders of this machine
    loading |= {key: _name(str(loading[key])) for key in ("name", "data") if loading.get(key) is not None}
    loading = {key: list(value) if isinstance(value, tuple) else value for key, value in loading.items()}
    windows = {}  # of long texts
    if kind_of(task).windows:
        windows = {"overlap": usual_overlap(prepared.length), "unanswerable": not rows.answerable}
    return {
        "version": VERSION,
        "task": loading,
        "kind": task.kind,
        "labels": list(task.labels),
        "metric": task.metric,
        "metrics": list(task.metrics),
        "length": prepared.length or None,
        **windows,
        "columns": _columns(task, loading),
        "beams": prepared.beams,
        "data": contents(task),
        "rows": {
            name: {"source": _name(origin.source), "indices": list(origin.rows)}
            for name, origin in task.origins.items()
            if name in SPLITS
        },
        "scores": {"validation": dict(validation), "test": None if test is None else dict(test)},
        "intervals": {split: dict(found.intervals) for split, found in (evidence or {}).items()},
    }


def _columns(task: Task, loading: Mapping[str, Any]) -> list[str]:
    """Name the columns of text; rows of other kinds have none."""
    kind = kind_of(task)
    return list(loading.get("text") or kind.columns or text_columns(loading)) if kind.has_tokens else []


def _name(path: str) -> str:
    return Path(path).name if Path(path).is_absolute() else path


def evidence_of(metrics: Mapping[str, float], tables: Tables, prepared: Prepared, part: PreparedRows) -> Evidence:
    """Return the confidence intervals of a model's scores on some rows, and those of a constant baseline."""
    found, guess = intervals(tables, derive(0, "bootstrap")), constant_baseline(prepared, part)
    rows = len(next(iter(tables.values())))
    return Evidence(rows, found, None if guess is None else _majority(metrics, tables, guess))


def _majority(metrics: Mapping[str, float], tables: Tables, guess: Judged) -> Majority:
    paired = differences(tables, guess.tables, derive(0, "bootstrap"))
    ahead = {
        # only paired intervals make sense: the baseline's answer does not depend on the rows
        name: Difference(sign_of(name) * (metrics[name] - guess.metrics[name]), interval, overlap=False)
        for name, interval in paired.items()
    }
    return Majority(guess.answer, guess.metrics, ahead)


def keep_tables(tables: Tables, folder: Path, split: str) -> None:
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **dict(tables))
    write_file(_path(folder, split), file.getvalue())


def kept_tables(folder: Path, split: str, metrics: Mapping[str, float]) -> Tables | None:
    """Read the contributions of a split's rows; None where they are missing, damaged or of other scores."""
    try:
        with np.load(_path(folder, split), allow_pickle=False) as file:
            tables = {name: file[name] for name in file.files if name in METRICS.names()}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
        return None
    fitting = all(name in metrics and _gives(name, table, metrics[name]) for name, table in tables.items())
    return tables if tables and fitting else None


def _gives(name: str, table: object, score: float) -> bool:
    if not isinstance(table, np.ndarray) or table.ndim != 2 or not len(table) or table.dtype != np.float64:
        return False
    found = metric(name).scores(table, np.ones((1, len(table))))
    return math.isclose(float(found[0]), score, rel_tol=_SAME, abs_tol=_SAME)


def _path(folder: Path, split: str) -> Path:
    return folder / f"rows-{split}.npz"
