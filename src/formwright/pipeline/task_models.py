"""Models for a task as artifacts of stages: folders that load, with their scores; whether a teacher beats chance."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from formwright.tasks.metrics import metric

if TYPE_CHECKING:
    from formwright.nn.task_model import TaskModel
    from formwright.tasks.bootstrap import Evidence
    from formwright.train.prepare import Prepared


def save_task_model(
    model: "TaskModel", prepared: "Prepared", folder: Path, lineage: Mapping[str, str]
) -> "tuple[Mapping[str, float], Evidence]":
    """Judge a model on validation, and write it as a folder that is whole or not there at all; give its scores."""
    from formwright.evaluate.evaluation_file import evidence_of
    from formwright.train.judge import judged

    found = judged(model, prepared, prepared.validation)
    evidence = evidence_of(found.metrics, found.tables, prepared, prepared.validation)
    write_task_model(model, prepared, folder, lineage, {"validation": found.metrics}, {"validation": evidence})
    return found.metrics, evidence


def write_task_model(
    model: "TaskModel",
    prepared: "Prepared",
    folder: Path,
    lineage: Mapping[str, object],
    scores: Mapping[str, Mapping[str, float]],
    evidence: "Mapping[str, Evidence]",
    costs: Mapping[str, object] | None = None,
) -> None:
    """Write a model with its scores by split, as a folder that is whole or not there at all."""
    from formwright.evaluate.evaluation_file import evaluation_of
    from formwright.nn.hf.save import save_pretrained_folder
    from formwright.pipeline.conclusion import score_facts

    task, tokeniser, name = prepared.task, prepared.tokeniser, name_without_folder(prepared.task.name)
    lines: dict[str, str] = {}
    for split, found in scores.items():
        lines |= score_facts(name, split, found, evidence[split])
    named = model.spec.has_names and model.spec.labels > 1
    save_pretrained_folder(
        model.cpu().eval(),
        folder,
        tokenizer=None if tokeniser is None else tokeniser.tokenizer,
        labels=task.labels if named else (),
        scores=lines,
        costs=costs,
        lineage={**lineage, "task": name},
        evaluation=evaluation_of(prepared, scores["validation"], scores.get("test"), evidence),
        force=True,
    )


def name_without_folder(name: str) -> str:
    """Give a name as a model that goes out may show it: not where on this machine a file of the user's own lies."""
    return Path(name).name if Path(name).is_absolute() else name


_LEAST_SKILL = 0.2  # of the way from an answer that ignores the input to the best possible score


@dataclass(frozen=True)
class Weakness:
    """Say what a model scores on N validation rows, and what an answer that ignores the input does."""

    metric: str
    rows: int
    score: float
    answer: str
    constant: float
    told_apart: bool

    def __str__(self) -> str:
        apart = "near" if self.told_apart else "not to be told apart from"
        return (
            f"{apart} chance: {self.metric} {self.score:.4f} on {self.rows:,} validation rows, where "
            f"{self.answer} has {self.constant:.4f}"
        )


def find_weakness(prepared: "Prepared", scores: Mapping[str, float], evidence: "Evidence") -> Weakness | None:
    """Compare the scores of a model on validation with an answer that ignores the input, by the task's metric.

    It is weak where the difference may be chance, and where it is less than a fifth of what is possible. A task without
    such an answer, as of spans that are always there, has no weak models.
    """
    deciding = metric(prepared.task.metric)
    apart, majority = evidence.beats_majority(deciding.name), evidence.majority
    if apart is None or majority is None:
        return None
    score, constant = scores[deciding.name], majority.scores[deciding.name]
    if apart and score - constant >= _LEAST_SKILL * (deciding.range[1] - constant):
        return None
    return Weakness(deciding.name, evidence.rows, score, majority.answer, constant, apart)
