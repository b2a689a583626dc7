"""`formwright show task:NAME`: what a task asks, and how its rows look. The test rows stay closed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.cli.output import echo, print_json, print_table
from formwright.cli.task_options import columns_of

if TYPE_CHECKING:
    from formwright.tasks.task import Task

PREFIX = "task:"
_EXAMPLES = 3
_VOCABULARY = 1_000  # tokens of a tokeniser trained on the rows; that of a model may cut text otherwise
_WIDTH = 300  # letters of a text in the table


@dataclass(frozen=True)
class TaskWishes:
    """What the user said of a task beside its name."""

    data: Path | None
    official_dev: bool
    text: str | None
    label: str
    kind: str

    def given(self) -> list[str]:
        """List the options that were given."""
        options = {"--data": self.data, "--official-dev": self.official_dev, "--text": self.text, "--label": self.label}
        options["--task-kind"] = self.kind
        return [name for name, value in options.items() if value]


def show_task(name: str, wishes: TaskWishes, as_json: bool) -> None:
    """Print the facts of a task: kind, metrics, sizes, labels, examples, lengths of texts, and where it comes from."""
    from formwright.tasks import load_task

    text = columns_of(wishes.text)
    facts = _facts(load_task(name, wishes.data, wishes.official_dev, text, wishes.label, wishes.kind))
    if as_json:
        print_json(facts)
    else:
        _print(facts)


def _facts(task: "Task") -> dict[str, Any]:
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
        "labels": _labels(task, view.train, view.validation),
        "scores": _scores(view.train) if task.kind == "regression" else None,
        "words": _words(columns),
        "tokens": _tokens(task),
        "examples": [_example(task, columns, row) for row in range(min(_EXAMPLES, len(view.train)))],
    }


def _columns(rows: Any) -> dict[str, Sequence[Any]]:
    """Name what the rows hold, whatever kind of rows they are."""
    from formwright.tasks.rows import ImageRows, PlainText, TextRows, TranslationRows

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
    """Count the words of what comes in first: a pair is counted as one text, and images have none."""
    if "image" in columns:
        return None
    texts = next(iter(columns.values()))
    counts = sorted(len(" ".join(text).split() if isinstance(text, tuple) else text.split()) for text in texts)
    return {name: counts[int(share * len(counts))] for name, share in (("median", 0.5), ("95 %", 0.95))}


def _tokens(task: "Task") -> dict[str, Any] | None:
    """Say how long the rows are in tokens, which length a search takes by default, and how many rows that cuts."""
    from formwright.tasks.row_length import cut_by_default

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


def _labels(task: "Task", train: Any, validation: Any) -> list[dict[str, Any]]:
    from formwright.tasks.data_warnings import class_counts

    if not task.labels:
        return []
    counts = [class_counts([rows], len(task.labels)) for rows in (train, validation)]
    return [
        {"name": name, "train": counts[0][index], "validation": counts[1][index]}
        for index, name in enumerate(task.labels)
    ]


def _scores(rows: Any) -> dict[str, float]:
    return {"least": min(rows.labels), "mean": sum(rows.labels) / len(rows), "largest": max(rows.labels)}


def _example(task: "Task", columns: dict[str, Sequence[Any]], row: int) -> dict[str, Any]:
    example = {name: values[row] for name, values in columns.items()}
    if task.labels:
        label = example["label"]
        several = isinstance(label, tuple)
        names = [name for place, name in enumerate(task.labels) if (label[place] if several else label == place)]
        example["label"] = tuple(names) if several else names[0]
    return example


def _print(facts: dict[str, Any]) -> None:
    echo(f"{facts['name']}: {facts['about']}\n")
    chance = "" if facts["chance"] is None else f" (chance: {facts['chance']:.3g})"
    lines = {
        "kind": "; ".join(part for part in (facts["task_kind"], facts["guess"]) if part),
        "metric": facts["metric"] + chance,
        "reported": ", ".join(facts["metrics"]),
        "train": f"{facts['train']:,} rows",
        "validation": f"{facts['validation']:,} rows",
        "test": facts["test"],
        "division": facts["division"],
        "words": _joined(facts["words"]),
        "tokens": "" if facts["tokens"] is None else _told_tokens(facts["tokens"]),
        "scores": _joined(facts["scores"]),
    }
    print_table(["fact", "value"], [(name, value) for name, value in lines.items() if value])
    if facts["warnings"]:
        print_table(["warning"], [(_short(warning["message"]),) for warning in facts["warnings"]])
    if facts["labels"]:
        rows = [(_short(label["name"]), f"{label['train']:,}", f"{label['validation']:,}") for label in facts["labels"]]
        print_table(["label", ">train", ">validation"], rows)
    for example in facts["examples"]:
        print_table(["example", ""], [(name, _short(value)) for name, value in example.items()])


def _told_tokens(tokens: dict[str, Any]) -> str:
    sizes = f"median {tokens['median']}, longest {tokens['longest']:,}, in a vocabulary of {tokens['vocabulary']:,}"
    return f"{sizes}; with the default --length {tokens['length']}, {tokens['about']}"


def _joined(numbers: dict[str, float] | None) -> str:
    return ", ".join(f"{name} {number:.4g}" for name, number in (numbers or {}).items())


def _short(value: Any) -> str:
    text = " | ".join(value) if isinstance(value, tuple) else str(value)
    shown = "".join(letter if letter.isprintable() else " " for letter in text[:_WIDTH])  # no commands to the terminal
    return shown if len(text) <= _WIDTH else shown + " ..."
