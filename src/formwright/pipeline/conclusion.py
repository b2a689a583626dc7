"""What is said about the scores of a model, in the same words on the terminal, on the page and in the model card."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from formwright.tasks.bootstrap import Difference, Evidence, Interval


@dataclass(frozen=True)
class Summary:
    """A table, lines above and below it, and the same as JSON data; headings of numbers begin with `>`."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    lines: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    conclusion: Sequence[str] = ()


COMPARED = "comparison"  # in the notes of the log
TRY_NEXT = (
    "Try more training rows, more steps (--steps, --final-steps), another learning rate (--learning-rate), longer rows "
    "(--length), or a pretrained model (`formwright train FOLDER` or `formwright compress`)"
)


@dataclass(frozen=True)
class Comparison:
    """How a delivered model does compared with another, a baseline or a teacher, by one metric on one split."""

    model: str
    other: str
    metric: str
    split: str
    difference: Difference

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Comparison":
        """Read what `dataclasses.asdict` gave."""
        model, other, metric, split = (str(data[name]) for name in ("model", "other", "metric", "split"))
        return cls(model, other, metric, split, Difference.from_json(data["difference"]))


def with_interval(value: float, interval: Interval | None) -> str:
    """Write a score with its 95 % confidence interval."""
    return f"{value:.4f}" if interval is None else f"{value:.4f} (95 % interval {between(interval)})"


def between(interval: Interval) -> str:
    return f"{interval[0]:.4f} to {interval[1]:.4f}"


def score_line(metric: str, split: str, value: float, evidence: Evidence | None) -> str:
    """Say what a model scores, how sure that is, and what an answer that ignores the input scores.

    Where the model is not significantly better than that answer, this is said first.
    """
    if evidence is None:
        return f"{split} {metric} {value:.4f}"
    score = f"{split} {metric} {with_interval(value, evidence.intervals.get(metric))} on {evidence.rows:,} rows"
    majority = evidence.majority
    if majority is None or metric not in majority.scores:
        return f"{score}; no answer that ignores the input can be scored here"
    guess = f"{majority.answer} gives {majority.scores[metric]:.4f}"
    if evidence.beats_majority(metric):
        return f"{score}; {guess}"
    above = majority.differences[metric].value > 0
    warning = "Cannot be told apart from guessing" if above else "No better than guessing"
    return f"{warning}: {score}, and {guess}. {TRY_NEXT}"


def comparison_line(found: Comparison, score: float, other_score: float, *, beats: bool | None, other: str) -> str:
    """Say how a model does compared with another; `beats` tells whether it is better than the majority class."""
    difference, ends = found.difference, found.difference.interval
    gap = f"difference {difference.value:+.4f}"
    gap += "" if ends is None else f", 95 % interval {ends[0]:+.4f} to {ends[1]:+.4f}"
    scores = f"{score:.4f} and {other_score:.4f} {found.split} {found.metric}, {gap}"
    if difference.outcome == "not told apart":
        why = "; their intervals overlap" if difference.overlap else ""
        return f"{found.model} and {other} cannot be told apart: {scores}{why}"
    if beats is False:
        return f"{found.model} and {other} have {scores}, which says little: {found.model} is no better than guessing"
    return f"{found.model} is {difference.outcome} than {other}: {scores}"


def score_facts(name: str, split: str, metrics: Mapping[str, float], evidence: Evidence | None) -> dict[str, str]:
    """Give the lines of a model card about one split of a task: scores with intervals, and the answer to beat."""
    intervals = {} if evidence is None else evidence.intervals
    facts = {
        f"{name} {split} {metric}": with_interval(value, intervals.get(metric)) for metric, value in metrics.items()
    }
    if evidence is None:
        return facts
    majority = evidence.majority
    facts[f"{name} {split} rows"] = f"{evidence.rows:,}"
    for metric, score in ({} if majority is None else majority.scores).items():
        if majority is not None and metric in metrics:
            detail = "" if evidence.beats_majority(metric) else "; the model is not significantly better"
            facts[f"{majority.answer}: {split} {metric}"] = f"{score:.4f}{detail}"
    return facts


def training_summary(facts: Mapping[str, Any]) -> Summary:
    """Put the facts of a training (`TrainModel`) into a table: scores, steps, size and time."""
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
