"""The evaluation file of a delivered model: task, rows, length and scores.

With the folder and the original data file, the model can be scored again on the rows whose indices are listed here.
Test rows are listed by index only: `evaluate.final` alone opens them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from formwright.tasks import text_columns
from formwright.tasks.bootstrap import Evidence
from formwright.tasks.rows import SpanRows
from formwright.tasks.span_windows import usual_overlap
from formwright.tasks.task import Task, contents
from formwright.train.prepare import Prepared

VERSION = 1
SPLITS = ("validation", "test")


def evaluation_of(
    prepared: Prepared,
    validation: Mapping[str, float],
    test: Mapping[str, float] | None = None,
    evidence: Mapping[str, Evidence] | None = None,
) -> dict[str, Any]:
    """Describe, as JSON data, how a model was evaluated; files are named without their folders.

    `evidence` has the confidence intervals of each split.
    """
    task, loading = prepared.task, _loading(prepared.task)
    origins = {name: origin for name, origin in task.origins.items() if name in SPLITS}
    return {
        "version": VERSION,
        "task": loading,
        "kind": task.kind,
        "labels": list(task.labels),
        "metric": task.metric,
        "metrics": list(task.metrics),
        "length": prepared.length or None,
        **_windows(prepared),
        "columns": list(text_columns(loading)),
        "beams": prepared.beams,
        "data": contents(task),
        "rows": {
            name: {"source": _name(origin.source), "indices": list(origin.rows)} for name, origin in origins.items()
        },
        "scores": {"validation": dict(validation), "test": None if test is None else dict(test)},
        "intervals": {split: dict(found.intervals) for split, found in (evidence or {}).items()},
    }


def _windows(prepared: Prepared) -> dict[str, Any]:
    """Describe the windows of long texts, and whether questions may be unanswerable."""
    rows = prepared.validation.rows
    if not isinstance(rows, SpanRows):
        return {}
    return {"overlap": usual_overlap(prepared.length), "unanswerable": not rows.answerable}


def _loading(task: Task) -> dict[str, Any]:
    """Return the arguments that load a task, without the folders of this machine."""
    given = {"name": task.name, **task.load}
    names = {key: _name(str(given[key])) for key in ("name", "data") if given.get(key) is not None}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in {**given, **names}.items()}


def _name(path: str) -> str:
    return Path(path).name if Path(path).is_absolute() else path
