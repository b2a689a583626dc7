"""`formwright show task:NAME`: what a task asks, and how its rows look. The test rows stay closed."""

from typing import TYPE_CHECKING, Any

from formwright.cli.output import echo, print_json, print_table

if TYPE_CHECKING:
    from formwright.pipeline.task_choice import TaskChoice

PREFIX = "task:"
_WIDTH = 300  # letters of a text in the table


def show_task(choice: "TaskChoice", as_json: bool) -> None:
    """Print the facts of a task: kind, metrics, sizes, labels, examples, lengths of texts, and where it comes from."""
    from formwright.tasks.task_facts import task_facts

    facts = task_facts(choice.load())
    if as_json:
        print_json(facts)
    else:
        _print(facts)


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
