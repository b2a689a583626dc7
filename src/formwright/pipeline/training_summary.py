"""What is said at the end of the training of one model."""

from collections.abc import Mapping
from typing import Any

from formwright.pipeline.conclusion import with_interval
from formwright.pipeline.summary import Summary


def training_summary(facts: Mapping[str, Any]) -> Summary:
    """Put the facts of a training (`TrainingOutcome.facts`) into a table: scores, steps, size and time."""
    rows: list[tuple[str, str]] = []
    for split, scores in (("validation", facts["metrics"]), ("test", facts["test"] or {})):
        rows += _scores(split, scores, facts["evidence"].get(split))
    last = facts["losses"][-max(len(facts["losses"]) // 20, 1) :]
    rows += [
        ("loss at the end", f"{sum(last) / len(last):.4f}"),
        ("steps", f"{facts['steps']:,}"),
        ("step of the best weights", f"{facts['best_step']:,}"),
        ("parameters", f"{facts['params']:,}"),
        ("padding", f"{facts['padding']:.1%}"),
        ("seconds of training", f"{facts['seconds']:.1f}"),
    ]
    lines = [f"the model is in {facts['model']}; it loads with transformers, see its README.md"]
    return Summary((f"{facts['name']} on {facts['task']}", ">measured"), rows, lines, facts, facts["conclusion"])


def _scores(split: str, scores: Mapping[str, float], evidence: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Give the scores on a split with their intervals, and below them those of an answer that ignores the input."""
    intervals = {} if evidence is None else evidence["intervals"]
    rows = [(f"{split} {name}", with_interval(value, intervals.get(name))) for name, value in scores.items()]
    majority: Any = (evidence or {}).get("majority") or {"answer": "", "scores": {}}
    for name, value in majority["scores"].items():
        rows.append((f"{majority['answer']}: {split} {name}", f"{value:.4f}"))
    return rows
