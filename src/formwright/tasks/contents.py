"""What a task consists of, told by content: a file may change and keep its name."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from formwright.core.remember import remember
from formwright.tasks.rows import AnyRows
from formwright.tasks.task import Task, _made

_ROWS, _SHA = "rows", "sha256"


@remember
def contents(task: Task) -> dict[str, Any]:
    """Give the number of rows and the digest of each split, and the digest of the labels, as plain JSON data.

    Test rows are counted and hashed, and not shown; their entry is None where a task has none.
    """
    splits = _made(task)
    labels = hashlib.sha256(json.dumps([task.kind, task.labels]).encode()).hexdigest()
    return {
        "training rows": _entry(splits.train),
        "validation rows": _entry(splits.validation),
        "test rows": None if splits.test is None else _entry(splits.test),
        "labels": labels,
    }


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Name what differs between two records of contents, with the number of rows before and now."""
    return [
        _told(name, before.get(name), value) for name, value in now.items() if _sha(before.get(name)) != _sha(value)
    ]


def _entry(rows: AnyRows) -> dict[str, Any]:
    return {_ROWS: len(rows), _SHA: rows.digest}


def _sha(entry: Any) -> Any:
    return entry.get(_SHA) if isinstance(entry, Mapping) else entry


def _told(name: str, before: Any, now: Any) -> str:
    counts = [entry.get(_ROWS) if isinstance(entry, Mapping) else None for entry in (before, now)]
    if counts == [None, None]:
        return f"the {name}"
    if counts[0] == counts[1]:
        return f"the {name} ({counts[0]:,} before and now, with other content)"
    first, second = ("none" if count is None else f"{count:,}" for count in counts)
    return f"the {name} ({first} before, {second} now)"
