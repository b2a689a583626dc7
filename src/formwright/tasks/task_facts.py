"""What a task asks, and how its rows look, as JSON data."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from formwright.tasks.kind import kind_of
from formwright.tasks.row_length import cut_by_default
from formwright.tasks.task import Task, class_counts

_EXAMPLES = 3
_VOCABULARY = 1_000  # tokens of a tokeniser trained on the rows; that of a model may divide text differently


def task_facts(task: Task) -> dict[str, Any]:
    """Give everything about a task and its rows as JSON data; the test rows stay closed."""
    view = task.search_view()
    columns = view.train.shown
    return {
        "kind": "task",
        "name": task.name,
        "task_kind": task.kind,
        "guess": task.guess,
        "about": task.about,
        "metric": task.metric,
        "metrics": list(task.metrics),
        "chance": task.chance,
        "train": len(view.train),
        "validation": len(view.validation),
        "test": "kept for the final evaluation" if task.has_test else "none",
        "division": task.division,
        "warnings": [asdict(warning) for warning in task.warnings],
        "labels": _labels(task),
        "scores": _scores(view.train.labels) if "label" in columns and not task.labels else None,
        "words": _words(columns) if kind_of(task).has_tokens else None,
        "tokens": _tokens(task),
        "examples": [_example(task, columns, row) for row in range(min(_EXAMPLES, len(view.train)))],
    }


def _words(columns: Mapping[str, Sequence[Any]]) -> dict[str, int]:
    """Count the words of the input: a pair is counted as one text."""
    texts = next(iter(columns.values()))
    counts = sorted(len(" ".join(text).split() if isinstance(text, tuple) else text.split()) for text in texts)
    return {name: counts[int(share * len(counts))] for name, share in (("median", 0.5), ("95 %", 0.95))}


def _tokens(task: Task) -> dict[str, Any] | None:
    """Give the length of the rows in tokens, the default length of a search, and how many rows that cuts."""
    found = cut_by_default(task, _VOCABULARY)
    if found is None:
        return None
    sizes, cut = found
    return {
        "vocabulary": _VOCABULARY,
        "median": int(sorted(sizes)[len(sizes) // 2]),
        "longest": cut.longest,
        "length": cut.length,
        "cut": cut.share,
        "about": cut.sentence,
    }


def _labels(task: Task) -> list[dict[str, Any]]:
    if not task.labels:
        return []
    view = task.search_view()
    counts = {name: class_counts([getattr(view, name)], len(task.labels)) for name in ("train", "validation")}
    return [
        {"name": label, **{name: found[place] for name, found in counts.items()}}
        for place, label in enumerate(task.labels)
    ]


def _scores(labels: Sequence[float]) -> dict[str, float]:
    return {"least": min(labels), "mean": sum(labels) / len(labels), "largest": max(labels)}


def _example(task: Task, columns: Mapping[str, Sequence[Any]], row: int) -> dict[str, Any]:
    example = {name: values[row] for name, values in columns.items()}
    if task.labels and isinstance(label := example.get("label"), tuple):
        example["label"] = tuple(name for name, has in zip(task.labels, label, strict=True) if has)
    elif task.labels and label is not None:
        example["label"] = task.labels[int(label)]
    if "tags" in example:
        example["tags"] = tuple(task.labels[tag] for tag in example["tags"])
    return example
