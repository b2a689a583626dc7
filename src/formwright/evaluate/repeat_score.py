"""Score a delivered model again, on the rows that its folder records."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Literal

from formwright.core.errors import IllegalInput
from formwright.evaluate.evaluation_file import evidence_of
from formwright.evaluate.final import openings, test_again
from formwright.evaluate.loaded_model import LoadedModel
from formwright.nn.deploy.runtimes import FileModel
from formwright.tasks import FROM_DATA, TASKS, is_a_path, load_task
from formwright.tasks.bootstrap import Evidence
from formwright.tasks.kind import kind_of
from formwright.tasks.task import Task, changes, contents, shortened
from formwright.train.fit import head_fits, head_of
from formwright.train.judge import judged
from formwright.train.prepare import Prepared, prepare

Split = Literal["validation", "test"]
_ELSEWHERE = 1e-4  # other runtimes round differently, which changes a correlation or a perplexity slightly


@dataclass(frozen=True)
class RepeatedScore:
    """The scores of a model on one split of a task, and those that its folder records.

    `recorded` is None where the folder has no scores for these rows; `changed` names what differs between the data and
    those recorded. `evidence` has the confidence intervals. `openings` is how often the test rows were opened for this
    folder. `tolerance` is the allowed difference between a repeated and a recorded score, relative to those above 1.
    """

    task: str
    split: Split
    rows: int
    metric: str
    length: int
    metrics: Mapping[str, float]
    evidence: Evidence
    recorded: Mapping[str, float] | None
    changed: tuple[str, ...] = ()
    openings: int = 0
    tolerance: float = 1e-6

    @property
    def repeats(self) -> bool | None:
        """Return whether the recorded scores came out again, within the tolerance; None where there are none."""
        if self.recorded is None:
            return None
        return all(
            abs(self.metrics.get(name, inf) - value) <= self.tolerance * max(1, abs(value))
            for name, value in self.recorded.items()
        )


def find_task(loaded: LoadedModel, name: str | None, given: Mapping[str, Any]) -> Task:
    """Load the task that is named, or the one that a folder records.

    `given` are the other arguments of `load_task`. Missing arguments are taken from the record where the task is the
    same or both are files, because a renamed or moved file keeps its columns.
    """
    recorded = dict((loaded.evaluation or {}).get("task") or {})
    if name is None and not recorded.get("name"):
        raise IllegalInput(f"{loaded.folder} does not say which task its model is for; name one with --task")
    own = recorded.pop("name", None)
    same = name is None or (
        own is not None and (Path(name).name == Path(own).name or (is_a_path(name) and is_a_path(str(own))))
    )
    if name is None and not _is_here(str(own)):
        raise IllegalInput(
            f"the model in {loaded.folder} was trained on the file or folder {own!r}, which is not in this directory; "
            "say where it is with --task PATH"
        )
    chosen = {**(recorded if same else {}), **{key: value for key, value in given.items() if value}}
    data, rows = chosen.pop("data", None), chosen.pop("rows", None)
    chosen["text"] = tuple(chosen.get("text") or ())
    task = load_task(name or str(own), None if data is None else Path(data), **chosen)
    return task if rows is None else shortened(task, rows)


def _is_here(own: str) -> bool:
    """Return whether a recorded task needs no path: one with a name, a dataset of the hub, or a file that is there."""
    in_hub = own.count("/") == 1 and not is_a_path(own)
    return own in (*TASKS.names(), *FROM_DATA) or in_hub or os.path.exists(own)


def repeat_score(loaded: LoadedModel, task: Task, split: Split) -> RepeatedScore:
    """Score a model on the validation rows or on the test rows of a task; the latter is recorded in its folder."""
    prepared = _prepared(loaded, task)
    opened = 0
    if split == "test":
        tested = test_again(loaded.model, prepared, loaded.digest, loaded.folder)
        metrics, evidence, opened = tested.metrics, tested.evidence, len(openings(loaded.folder))
    else:
        found = judged(loaded.model, prepared, prepared.validation)
        metrics, evidence = found.metrics, evidence_of(found.metrics, found.tables, prepared, prepared.validation)
    content = contents(task)
    rows = content[f"{split} rows"]["rows"]
    changed = _changed(loaded, content, split)
    recorded = ((loaded.evaluation or {}).get("scores") or {}).get(split)
    known = recorded if recorded and not changed else None
    length = _length(loaded, task)
    score = RepeatedScore(task.name, split, rows, task.metric, length, metrics, evidence, known, changed, opened)
    return replace(score, tolerance=_ELSEWHERE) if isinstance(loaded.model, FileModel) else score


def _prepared(loaded: LoadedModel, task: Task) -> Prepared:
    imported = loaded.imported
    if not head_fits(imported, task):
        raise IllegalInput(f"the model in {loaded.folder} does not answer {task.name}: {_why_not(loaded, task)}")
    if isinstance(loaded.model, FileModel) and not kind_of(task).in_files:
        raise IllegalInput(
            f"{loaded.folder} is a file for another runtime, where models for {task.kind} cannot be judged; "
            "evaluate the folder that it was exported from"
        )
    found = prepare(task, imported.card, _length(loaded, task) or 1, loaded.tokeniser)
    return replace(found, beams=int((loaded.evaluation or {}).get("beams") or 1))


def _length(loaded: LoadedModel, task: Task) -> int:
    """Return the length of a row; texts without labels were divided into pieces, shorter than what the model reads."""
    divided = kind_of(task).has_tokens and not kind_of(task).cuts
    recorded = (loaded.evaluation or {}).get("length") if divided else None
    return recorded if isinstance(recorded, int) and recorded > 0 else loaded.length


def _why_not(loaded: LoadedModel, task: Task) -> str:
    wanted, head = head_of(task), loaded.head
    if wanted.task != head.task or wanted.multi_label != head.multi_label:
        if wanted.task == head.task:
            return f"it is for {loaded.kind}, the task is {task.kind}"
        return f"its head is for {head.task}, the task is {task.kind}"
    if wanted.labels != head.labels:
        return f"it has {head.labels} labels, the task has {wanted.labels}"
    return f"its labels are {', '.join(loaded.imported.labels)}, those of the task {', '.join(task.labels)}"


def _changed(loaded: LoadedModel, content: Mapping[str, Any], split: Split) -> tuple[str, ...]:
    """Return what differs from the rows and labels that the folder records."""
    before = (loaded.evaluation or {}).get("data")
    if not isinstance(before, Mapping):
        return ()
    names = (f"{split} rows", "labels")
    return tuple(changes(before, {name: content[name] for name in names}))
