"""Final evaluation of a design: train it with a larger budget and open the test split once.

This is the only module that opens test rows. Each opening is recorded before the rows are read, so that testing the
same model again returns the recorded scores, and the folder shows how often the split was opened.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from formwright.core.errors import IllegalInput
from formwright.core.files import write_whole
from formwright.core.records import Observation, Request, Spent
from formwright.evaluate.context import Context, card_of
from formwright.evaluate.evaluation_file import evidence_of, keep_tables
from formwright.evaluate.training import OUTSIDE, Start, Trainer, require_finite_scores, training_macs, weights_of
from formwright.nn.task_model import TaskModel
from formwright.tasks.bootstrap import Evidence
from formwright.tasks.task import Task
from formwright.tasks.test_split import open_test
from formwright.train.device import threads
from formwright.train.distil import Teaching
from formwright.train.fit import Run, fit, fresh_model
from formwright.train.judge import Judged, judged
from formwright.train.loop import Saving, enough_memory
from formwright.train.prepare import Prepared, prepare

RECORD = "test-openings.json"
_SAVE_EVERY = 500  # steps


@dataclass(frozen=True)
class Verdict:
    """A finished model, its scores on validation and on test, and how often the test split has been opened here.

    `test` is None where no test was requested. `spent` is what the whole training took, however often it was
    interrupted. The weights are those after `best_step` steps. `evidence` says for each split how sure its scores are.
    """

    model: TaskModel
    validation: Mapping[str, float]
    test: Mapping[str, float] | None
    openings: int
    spent: Spent
    best_step: int = 0
    evidence: Mapping[str, Evidence] = field(default_factory=dict)


@dataclass(frozen=True)
class Tested:
    """The scores of a model on the test rows, and how sure they are."""

    metrics: Mapping[str, float]
    evidence: Evidence


def test_once(model: TaskModel, prepared: Prepared, name: str, folder: Path) -> Tested:
    """Score a model on the test rows of its task, and record it in `folder` under a name that stands for the model.

    A name that was scored before has its recorded scores returned, without opening the split again. An opening that
    failed stays on record next to its repetition.
    """
    for entry in openings(folder):
        if entry["name"] == name and entry["metrics"] is not None:
            return Tested(dict(entry["metrics"]), Evidence.from_json(entry["evidence"]))
    found, tested = _opened(model, prepared, name, folder)
    keep_tables(found.tables, folder, "test")
    return tested


def test_again(model: nn.Module, prepared: Prepared, name: str, folder: Path) -> Tested:
    """Score a finished model on the test rows of its task, again, and record each time."""
    return _opened(model, prepared, name, folder)[1]


def _opened(model: nn.Module, prepared: Prepared, name: str, folder: Path) -> tuple[Judged, Tested]:
    """Open the test rows; record that before reading them and again with the scores."""
    entries, rows = openings(folder), open_test(prepared.task)
    opened = {"name": name, "task": prepared.task.name, "rows": len(rows), "metrics": None}
    _write(folder, [*entries, opened])  # first: a crash while scoring must not hide that the split was opened
    part = prepared.part(rows)
    found = judged(model, prepared, part)
    evidence = evidence_of(found.metrics, found.tables, prepared, part)
    _write(folder, [*entries, opened | {"metrics": found.metrics, "evidence": asdict(evidence)}])
    return found, Tested(found.metrics, evidence)


def score_without_training(model: TaskModel, prepared: Prepared, context: Context) -> Verdict:
    """Score a model without training: on validation and, where its task has test rows, once on those."""
    if context.folder is None:
        raise IllegalInput("a final evaluation needs a folder to record that the test split was opened")
    with enough_memory(OUTSIDE), threads(1):
        found = judged(model, prepared, prepared.validation)
        require_finite_scores(found.metrics, 0)
        tested = None
        if prepared.task.has_test:
            tested = test_once(model, prepared, hashlib.sha256(weights_of(model)).hexdigest()[:32], context.folder)
            require_finite_scores(tested.metrics, 0, "test")
    return _verdict(model, found, tested, prepared, context.folder, Spent())


def _verdict(
    model: TaskModel,
    found: Judged,
    tested: Tested | None,
    prepared: Prepared,
    folder: Path,
    spent: Spent,
    best_step: int = 0,
) -> Verdict:
    keep_tables(found.tables, folder, "validation")
    evidence = {"validation": evidence_of(found.metrics, found.tables, prepared, prepared.validation)}
    evidence |= {} if tested is None else {"test": tested.evidence}
    test = None if tested is None else tested.metrics
    return Verdict(model, found.metrics, test, len(openings(folder)), spent, best_step, evidence)


def require_test_split(task: Task, folder: Path) -> None:
    """Refuse, before any training, a task without test rows and a folder whose record cannot be read."""
    openings(folder)
    open_test(task)  # no row is read


@dataclass(frozen=True)
class Final:
    """Train a chosen card, usually longer than the search did, and test it.

    `start` gives the initial model: with fresh weights, or one to fine-tune. Where there is `teaching`, it learns from
    a teacher as well.
    """

    trainer: Trainer
    start: Start = fresh_model
    teaching: Teaching | None = None

    def evaluate(self, request: Request, context: Context) -> Observation:
        """Train, evaluate on validation, and test; test scores are named `test/...`."""
        found = self.verdict(request, context)
        tested = {f"test/{name}": value for name, value in (found.test or {}).items()}
        return Observation({**found.validation, **tested}, found.spent)

    def verdict(self, request: Request, context: Context, *, test: bool = True) -> Verdict:
        """Train, evaluate and test, and return the model as well; an interrupted run is resumed."""
        if context.folder is None:
            raise IllegalInput("the final evaluation needs a folder to record that the test split was opened")
        if test:
            require_test_split(self.trainer.task, context.folder)
        card, training = card_of(request), self.trainer.seeded(context)
        prepared = prepare(self.trainer.task, card, training.length, self.trainer.tokeniser)
        with enough_memory(OUTSIDE):
            model = self.start(card, prepared, training)
            name = self._name(model, self.trainer.key(card, prepared, training))
            run = Run(Saving(context.folder / "runs" / name, _SAVE_EVERY), after_step=context.after_step)
            trained = fit(model, prepared, training, run, self.teaching)
        steps = len(trained.losses)
        require_finite_scores(trained.metrics, steps)  # before the test split is opened
        spent = Spent(trained.seconds, steps, training_macs(card, prepared, training, steps))
        tested = None
        if test:
            with threads(training.threads):
                tested = test_once(trained.model, prepared, name, context.folder)
            require_finite_scores(tested.metrics, steps, "test")
        found = Judged(dict(trained.metrics), trained.tables)
        return _verdict(trained.model, found, tested, prepared, context.folder, spent, trained.best_step)

    def _name(self, model: TaskModel, key: str) -> str:
        """Return the name of a run: its key, with digests of initial weights and teacher where there are any."""
        if self.start is fresh_model and self.teaching is None:
            return key
        taught = b"" if self.teaching is None else repr(self.teaching.mix).encode() + weights_of(self.teaching.teacher)
        return hashlib.sha256(key.encode() + weights_of(model) + taught).hexdigest()[:32]


def openings(folder: Path) -> list[dict[str, Any]]:
    path = folder / RECORD
    if not path.exists():
        return []
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise IllegalInput(f"cannot read the record of test openings {path}: {error}") from None
    if not isinstance(entries, list) or not all(map(_is_an_opening, entries)):
        raise IllegalInput(f"{path} is not a record of test openings; expected a list of names with metrics")
    return entries


def _is_an_opening(entry: Any) -> bool:
    if not (isinstance(entry, dict) and isinstance(entry.get("name"), str) and "metrics" in entry):
        return False
    metrics = entry["metrics"]
    if metrics is None:
        return True
    try:
        Evidence.from_json(entry["evidence"])
    except (KeyError, TypeError, ValueError):
        return False
    return isinstance(metrics, dict) and all(isinstance(value, int | float) for value in metrics.values())


def _write(folder: Path, entries: list[dict[str, Any]]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / RECORD, json.dumps(entries, indent=1))
    except OSError as error:
        detail = f"cannot write the record of test openings {folder / RECORD}: {error.strerror or error}"
        raise IllegalInput(f"{detail}; without it the test split is not opened") from error
