"""Models for a task as artifacts of stages: folders that load, with their scores, their tokeniser and their labels."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from formwright.nn.task_model import TaskModel
    from formwright.tasks.bootstrap import Evidence
    from formwright.train.prepare import Prepared

Scores = Mapping[str, Mapping[str, float]]  # by split


def save_task_model(model: "TaskModel", prepared: "Prepared", folder: Path, lineage: Mapping[str, str]) -> None:
    """Judge a model on validation, and write it as a folder that is whole or not there at all."""
    from formwright.evaluate.row_tables import evidence_of
    from formwright.train.judge import judged

    found = judged(model, prepared, prepared.validation)
    evidence = evidence_of(found.metrics, found.tables, prepared, prepared.validation)
    write_task_model(model, prepared, folder, lineage, {"validation": found.metrics}, {"validation": evidence})


def write_task_model(
    model: "TaskModel",
    prepared: "Prepared",
    folder: Path,
    lineage: Mapping[str, str],
    scores: Scores,
    evidence: "Mapping[str, Evidence]",
) -> None:
    """Write a model with its scores, as a folder that is whole or not there at all."""
    from formwright.evaluate.evaluation_file import evaluation_of
    from formwright.nn.hf.save import save_pretrained_folder
    from formwright.pipeline.conclusion import score_facts

    task, tokeniser = prepared.task, prepared.tokeniser
    name = Path(task.name).name if Path(task.name).is_absolute() else task.name
    lines: dict[str, str] = {}
    for split, found in scores.items():
        lines |= score_facts(name, split, found, evidence[split])
    named = model.spec.task == "sequence-classification" and model.spec.labels > 1
    save_pretrained_folder(
        model.cpu().eval(),
        folder,
        tokenizer=None if tokeniser is None else tokeniser.tokenizer,
        labels=task.labels if named else (),
        scores=lines,
        lineage={**lineage, "task": name},
        evaluation=evaluation_of(prepared, scores["validation"], scores.get("test"), evidence),
        force=True,
    )
