"""The last word on a design: train it with a larger budget and open the test split once.

This is the only module that opens test rows. It writes down that it did before it looks, so that a second look at the
same model gives the recorded scores, and a reader of the folder can see how often the split was opened.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.core.records import Observation, Request
from formwright.evaluate.context import Context
from formwright.evaluate.training import Trainer, card_of
from formwright.nn.task_model import TaskModel
from formwright.tasks.task import Task
from formwright.tasks.test_split import open_test
from formwright.train.device import threads
from formwright.train.fit import Run, fit, fresh_model
from formwright.train.judge import judge
from formwright.train.loop import Saving
from formwright.train.prepare import Prepared, prepare

RECORD = "test-openings.json"
_SAVE_EVERY = 500  # steps


@dataclass(frozen=True)
class Verdict:
    """A finished model, its scores on validation and on test, and how often the test split has been opened here.

    `test` is None where no test was wanted.
    """

    model: TaskModel
    validation: Mapping[str, float]
    test: Mapping[str, float] | None
    openings: int


def test_once(model: TaskModel, prepared: Prepared, name: str, folder: Path) -> Mapping[str, float]:
    """Score a model on the test rows of its task, and record it in `folder` under a name that stands for the model.

    A name that was scored before has its recorded scores returned, without opening the split again. An opening that
    came to no scores stays on record beside the one that repeats it.
    """
    entries = openings(folder)
    for entry in entries:
        if entry["name"] == name and entry["metrics"] is not None:
            return dict(entry["metrics"])
    rows = open_test(prepared.task)
    opened = {"name": name, "task": prepared.task.name, "rows": len(rows), "metrics": None}
    _write(folder, [*entries, opened])  # before looking: a crash while judging must not hide that the split was open
    metrics = judge(model, prepared, prepared.part(rows))
    _write(folder, [*entries, opened | {"metrics": metrics}])
    return metrics


def refuse_untestable(task: Task, folder: Path) -> None:
    """Refuse, before any training, a task without test rows and a folder whose record cannot be read."""
    openings(folder)
    open_test(task)  # no row is looked at


@dataclass(frozen=True)
class Final:
    """Train a chosen card, usually longer than the search did, and test it."""

    trainer: Trainer

    def evaluate(self, request: Request, context: Context) -> Observation:
        """Train, judge on validation, and test; test scores are named `test/...`."""
        found = self.verdict(request, context)
        tested = {f"test/{name}": value for name, value in (found.test or {}).items()}
        return Observation({**found.validation, **tested})

    def verdict(self, request: Request, context: Context, *, test: bool = True) -> Verdict:
        """Train, judge and test, and return the model as well; a run that was stopped is gone on with."""
        if context.folder is None:
            raise IllegalInput("the final evaluation needs a folder to record that the test split was opened")
        if test:
            refuse_untestable(self.trainer.task, context.folder)
        card, training = card_of(request), self.trainer.seeded(context)
        prepared = prepare(self.trainer.task, card, training.length, self.trainer.tokeniser)
        key = self.trainer.key(card, training)
        run = Run(Saving(context.folder / "runs" / key, _SAVE_EVERY), after_step=context.after_step)
        trained = fit(fresh_model(card, prepared, training), prepared, training, run)
        if not test:
            return Verdict(trained.model, trained.metrics, None, 0)
        with threads(training.threads):
            tested = test_once(trained.model, prepared, key, context.folder)
        return Verdict(trained.model, trained.metrics, tested, len(openings(context.folder)))


def openings(folder: Path) -> list[dict[str, Any]]:
    """List the recorded openings of a folder."""
    path = folder / RECORD
    if not path.exists():
        return []
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise IllegalInput(f"cannot read the record of test openings {path}: {error}") from None
    if not isinstance(entries, list) or not all(map(_is_an_opening, entries)):
        raise IllegalInput(f"{path} is no record of test openings; expected a list of names with metrics")
    return entries


def _is_an_opening(entry: Any) -> bool:
    if not (isinstance(entry, dict) and isinstance(entry.get("name"), str) and "metrics" in entry):
        return False
    metrics = entry["metrics"]
    return metrics is None or (
        isinstance(metrics, dict) and all(isinstance(value, int | float) for value in metrics.values())
    )


def _write(folder: Path, entries: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{RECORD}"
    draft.write_text(json.dumps(entries, indent=1), encoding="utf-8")
    draft.replace(folder / RECORD)
