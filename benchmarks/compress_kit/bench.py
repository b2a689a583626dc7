"""What all arms of the compression benchmark share: a task, its teacher, its steps, and a folder for results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from formwright.arch.card import Card
from formwright.compress.folders import Folders, write_json
from formwright.compress.job import Job, Started
from formwright.compress.plan import Plan
from formwright.compress.trainings import Conduct, Method, teacher
from formwright.cost import macs
from formwright.evaluate.context import Context
from formwright.evaluate.final import as_it_is
from formwright.nn.task_model import TaskModel
from formwright.recipes.eftnas import EFTNAS
from formwright.study.config import TaskChoice, TrainingChoice
from formwright.train.fit import Run
from formwright.train.loop import Saving

SHARES = (0.75, 0.5, 0.35, 0.25)
Row = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """One task with one seed; `epochs` are those of every arm after the teacher."""

    task: str
    data: str | None
    rows: int | None
    length: int
    seed: int
    epochs: float = EFTNAS.epochs
    model: str = ""
    threads: int = 2


@dataclass(frozen=True, eq=False)
class Bench:
    """A setting with its teacher; what an arm came to is kept as a JSON file, and not computed again."""

    setting: Setting
    out: Path

    @cached_property
    def started(self) -> Started:
        wish = self.setting
        training = TrainingChoice(
            batch=EFTNAS.batch,
            learning_rate=EFTNAS.learning_rate,
            warmup=0.1,
            length=wish.length,
            dropout=EFTNAS.dropout,
        )
        return Job(
            model=wish.model,
            task=TaskChoice(wish.task, wish.data, rows=wish.rows),
            targets=tuple(f"macs={share:.0%}" for share in SHARES),
            configurations=EFTNAS.configurations,
            hours=None,
            teacher_epochs=EFTNAS.teacher_epochs,
            epochs=wish.epochs,
            evaluations=EFTNAS.evaluations,
            finetune=0.0,
            training=training,
            network_rate=EFTNAS.network_rate,
            between=EFTNAS.between,
            labels=EFTNAS.labels,
            temperature=EFTNAS.temperature,
            order=EFTNAS.order,
            whole=True,
            hidden=(),
            searcher=EFTNAS.searcher,
            options={},
            threads=wish.threads,
            device="cpu",
            seed=wish.seed,
        ).started()

    @property
    def folders(self) -> Folders:
        return Folders(self.out)

    @cached_property
    def plan(self) -> Plan:
        return self.started.plan(lambda: None, 1)  # type: ignore[arg-type, return-value]

    @property
    def method(self) -> Method:
        return self.started.method

    @property
    def card(self) -> Card:
        return self.started.begun.card

    def cost(self, card: Card) -> float:
        return float(macs(card, self.setting.length))

    @cached_property
    def teacher(self) -> TaskModel:
        return teacher(self.started.begun, self.plan, self.method, self.folders, self.conduct)

    @property
    def conduct(self) -> Conduct:
        @contextmanager
        def saved(what: str, folder: Path, steps: int) -> Iterator[Run]:
            def told(step: int, loss: float) -> None:
                if (step + 1) % 200 == 0:
                    print(f"    {what}: step {step + 1} of {steps}, loss {loss:.4f}", flush=True)

            yield Run(Saving(folder, 200), after_step=told)

        return saved

    def judged(self, model: TaskModel, name: str) -> Row:
        """Score a model on validation and test, with its share of the teacher's MACs where it has a card."""
        verdict = as_it_is(model, self.started.begun.prepared, Context(folder=self.out / "final" / name))
        metric = self.started.begun.prepared.task.metric
        tested = None if verdict.test is None else verdict.test[metric]
        share = self.cost(model.transformer.card) / self.cost(self.card)
        return {"validation": verdict.validation[metric], "test": tested, "macs": share}

    def kept(self, name: str, compute: Callable[[], Row]) -> Row:
        """Read what an arm came to, or compute it."""
        path = self.out / "arms" / f"{name}.json"
        if path.is_file():
            return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
        print(f"  {self.setting.task} seed {self.setting.seed}: {name}", flush=True)
        found = compute()
        write_json(path, found)
        return found

    def otherwise(self, **changes: Any) -> Method:
        """Give the method with something changed."""
        return replace(self.method, **changes)
