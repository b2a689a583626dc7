"""What a delivered model says of its evaluation: the task, the very rows, the length and the scores.

With the folder and the original file, anybody can score the model again on the rows whose places are listed here. The
places of test rows are listed, and not the rows: they are opened by `evaluate.final` alone.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from formwright.tasks import text_columns
from formwright.tasks.contents import contents
from formwright.tasks.evidence import Evidence
from formwright.tasks.rows import Origin
from formwright.tasks.spans import SpanRows
from formwright.tasks.task import Task
from formwright.tasks.windows import usual_overlap
from formwright.train.prepare import Prepared

VERSION = 1
SPLITS = ("validation", "test")


def evaluation_of(
    prepared: Prepared,
    validation: Mapping[str, float],
    test: Mapping[str, float] | None = None,
    evidence: Mapping[str, Evidence] | None = None,
) -> dict[str, Any]:
    """Describe, as plain JSON data, how a model was judged; files are named without their folders.

    `evidence` says for each split how sure the scores are.
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
        "rows": {name: _places(origin) for name, origin in origins.items()},
        "scores": {"validation": dict(validation), "test": None if test is None else dict(test)},
        "intervals": {split: dict(found.intervals) for split, found in (evidence or {}).items()},
    }


def _windows(prepared: Prepared) -> dict[str, Any]:
    """Say how long texts are read in windows, and whether a question may have no answer."""
    rows = prepared.validation.rows
    if not isinstance(rows, SpanRows):
        return {}
    return {"overlap": usual_overlap(prepared.length), "unanswerable": not rows.answerable}


def _loading(task: Task) -> dict[str, Any]:
    """Give the arguments that load a task, without the folders of this machine."""
    given = {"name": task.name, **task.load}
    names = {key: _name(str(given[key])) for key in ("name", "data") if given.get(key) is not None}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in {**given, **names}.items()}


def _places(origin: Origin) -> dict[str, Any]:
    return {"source": _name(origin.source), "indices": list(origin.rows)}


def _name(path: str) -> str:
    return Path(path).name if Path(path).is_absolute() else path
