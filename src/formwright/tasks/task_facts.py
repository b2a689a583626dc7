"""What a task asks, and how its rows look, as JSON data."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from formwright.tasks.row_length import cut_by_default
from formwright.tasks.rows import ImageRows, PlainText, TextRows, TranslationRows
from formwright.tasks.task import Task, class_counts

_EXAMPLES = 3
_VOCABULARY = 1_000  # tokens of a tokeniser trained on the rows; that of a model may divide text differently


def task_facts(task: Task) -> dict[str, Any]:
    """Give everything about a task and its rows as JSON data; the test rows stay closed."""
    view = task.search_view()
    columns = _columns(view.train)
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
        "scores": _scores(view.train.labels) if task.kind == "regression" else None,
        "words": _words(columns),
        "tokens": _tokens(task),
        "examples": [_example(task, columns, row) for row in range(min(_EXAMPLES, len(view.train)))],
    }


def _columns(rows: Any) -> dict[str, Sequence[Any]]:
    match rows:
        case TextRows():
            return {"text": rows.texts, "label": rows.labels}
        case PlainText():
            return {"text": rows.texts}
        case TranslationRows():
            return {"source": rows.sources, "target": rows.targets}
        case ImageRows():
            size = " x ".join(str(side) for side in rows.pixels.shape[1:])
            return {"image": [f"{size} values"] * len(rows), "label": [int(label) for label in rows.labels]}
        case _:  # questions about texts
            return {"context": rows.contexts, "question": rows.questions, "answers": rows.texts}


def _words(columns: dict[str, Sequence[Any]]) -> dict[str, int] | None:
    """Count the words of the input: a pair is counted as one text, and images have none."""
    if "image" in columns:
        return None
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


def _example(task: Task, columns: dict[str, Sequence[Any]], row: int) -> dict[str, Any]:
    example = {name: values[row] for name, values in columns.items()}
    if task.labels:
        label = example["label"]
        several = isinstance(label, tuple)
        names = [name for place, name in enumerate(task.labels) if (label[place] if several else label == place)]
        example["label"] = tuple(names) if several else names[0]
    return example
