"""What all arms of the compression benchmark share: a task, its teacher, its steps, and a folder for results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import save
from torch import nn

from formwright.arch.card import Card
from formwright.compress.folders import Folders, write_json
from formwright.compress.job import Job, Started
from formwright.compress.method import Method
from formwright.compress.pacing import Pacing, Schedule
from formwright.compress.plan import Plan
from formwright.compress.trainings import Conduct, Work, teacher
from formwright.core.errors import IllegalInput
from formwright.cost import macs, params
from formwright.evaluate.final import test_once
from formwright.nn.task_model import TaskModel
from formwright.recipes.eftnas import EFTNAS
from formwright.search.fronts import hypervolume
from formwright.study.alone import alone_in
from formwright.study.config import TaskChoice, TrainingChoice
from formwright.tasks import load_task
from formwright.tasks.shorten import some_rows
from formwright.train.device import threads
from formwright.train.fit import Run
from formwright.train.judge import ONE_ANSWER, answers, compared, judge, truths
from formwright.train.loop import Saving
from formwright.train.prepare import Part
from formwright.train.remembered import remembered

SHARES = (0.75, 0.5, 0.35, 0.25)
SPLITS = ("validation", "test", "further")
Row = dict[str, Any]


class Held(Exception):
    """Say that an arm cannot be had now: another process computes it."""


@dataclass(frozen=True)
class Setting:
    """One task with one seed.

    `epochs` are those of every arm after the teacher, `evaluations` what the search of an arm may judge, `many` what
    the search that it is compared with may. `rates` are those of the teacher, and of everything after it. `ablation`
    are the epochs and the evaluations of arms that are compared with each other alone, where these are fewer. Where
    the task has more training rows than `rows`, models are judged on so many `further` ones too: they tell more models
    apart than the few test rows. `minutes` is the processor time of each arm of the part `fair`.
    """

    task: str
    data: str | None
    rows: int | None
    length: int
    seed: int
    epochs: float = EFTNAS.epochs
    model: str = ""
    threads: int = 1
    evaluations: int = 150
    many: int = 1000
    rates: tuple[float, float] = (EFTNAS.learning_rate, EFTNAS.network_rate)
    teacher_epochs: float = EFTNAS.teacher_epochs
    ablation: tuple[float, int] | None = None
    further: int = 2500
    minutes: float | None = None


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
            learning_rate=wish.rates[0],
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
            teacher_epochs=wish.teacher_epochs,
            epochs=wish.epochs,
            evaluations=wish.evaluations,
            finetune=0.0,
            training=training,
            network_rate=wish.rates[1],
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
        return self.plan_of(self.setting.epochs)

    def plan_of(self, epochs: float) -> Plan:
        """Give the plan of an arm that sees every row so often."""
        started = replace(self.started, job=replace(self.started.job, epochs=epochs))
        return started.usual

    @property
    def method(self) -> Method:
        return self.started.method

    @property
    def card(self) -> Card:
        return self.started.begun.card

    @property
    def metric(self) -> str:
        return self.started.begun.prepared.task.metric

    def share(self, card: Card) -> float:
        """Give the MACs of a design as a share of the teacher's."""
        return self.cost(card) / self.cost(self.card)

    def cost(self, card: Card) -> float:
        return float(macs(card, self.started.length))

    @cached_property
    def teacher(self) -> TaskModel:
        with self._alone("teacher-training"):
            pacing = Pacing(Schedule(self.plan))
            return teacher(Work(self.started.begun, self.method, self.folders, pacing, self.conduct))

    @cached_property
    def heard(self) -> nn.Module:
        """Give the teacher with a memory: it is asked once for each row, whatever arms learn from it."""
        known = self.teacher
        with self._alone("teacher-answers"), threads(self.setting.threads):
            return remembered(known, self.started.begun.prepared, self.folders.answers)

    @property
    def conduct(self) -> Conduct:
        @contextmanager
        def saved(what: str, folder: Path, steps: int) -> Iterator[Run]:
            def told(step: int, loss: float) -> None:
                if (step + 1) % 200 == 0:
                    print(f"    {what}: step {step + 1} of {steps}, loss {loss:.4f}", flush=True)

            yield Run(Saving(folder, 200), after_step=told)

        return saved

    @cached_property
    def further(self) -> Part | None:
        """Encode training rows that nobody learns from; None where all are learned from."""
        first, number = self.setting.rows, self.setting.further
        rows = load_task(self.setting.task, self.setting.data and Path(self.setting.data)).search_view().train
        if first is None or not number or len(rows) <= first:
            return None
        return self.started.begun.prepared.part(some_rows(rows, slice(first, first + number)))

    def validated(self, model: nn.Module) -> float:
        """Score a model on validation."""
        return self._score(model, self.started.begun.prepared.validation)

    def _score(self, model: nn.Module, part: Part) -> float:
        with threads(1):
            return judge(model, self.started.begun.prepared, part)[self.metric]

    def judged(self, model: nn.Module, name: str) -> Row:
        """Score a model on validation, on further rows and, once, on test.

        Other weights of the same name are another model.
        """
        prepared, folder = self.started.begun.prepared, self.out / "final" / name
        label = f"{name} {_digest(model)}"
        with threads(1):
            tested = test_once(model, prepared, label, folder).metrics if prepared.task.has_test else {}
        found = {"validation": self.validated(model), "test": tested.get(self.metric), "further": None}
        if self.further is not None:
            found |= {"further": self._score_further(model, name), "answers": name}
        return found

    def _score_further(self, model: nn.Module, name: str) -> float:
        """Score a model on further rows, and keep which of them it answers right, for intervals of differences."""
        prepared, part = self.started.begun.prepared, self.further
        assert part is not None
        if prepared.task.kind not in ONE_ANSWER:
            return self._score(model, part)
        with threads(1):
            return self._keep_answers(name, answers(model, prepared, part, np.arange(len(part.examples))), truths(part))

    def _keep_answers(self, name: str, given: Any, truth: Any) -> float:
        path = self.out / "right" / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, given == truth)
        return compared(self.started.begun.prepared, given, truth)[self.metric]

    def judged_majority(self) -> Row:
        """Score the label that is most frequent among the training rows, on further rows."""
        prepared = self.started.begun.prepared
        if self.further is None:
            raise SystemExit(f"all rows of {self.setting.task} are trained on, so that none are held out")
        labels, truth = truths(prepared.train), truths(self.further)
        given = np.full_like(truth, np.bincount(labels).argmax())
        return {"further": self._keep_answers("majority", given, truth)}

    def judged_design(self, model: TaskModel, name: str) -> Row:
        """Score a model that has a card, and say what it costs."""
        card = model.transformer.card
        return self.judged(model, name) | {"macs": self.share(card), "params": params(card)}

    def volume(self, points: Sequence[tuple[float, float]]) -> float:
        """Give the hypervolume of shares of the MACs and scores, above chance and below the teacher's MACs."""
        chance = self.started.begun.prepared.task.chance or 0.0
        return hypervolume(np.array(points), (1.0 + 1e-9, chance), ("min", "max")) if points else 0.0

    def volumes(self, at: Mapping[str, Row]) -> dict[str, float | None]:
        """Give the hypervolumes of one model for each share: the same number of points for every arm."""
        rows = [at[f"{share:.0%}"] for share in SHARES if f"{share:.0%}" in at]
        return {
            split: self.volume([(row["macs"], row[split]) for row in rows])
            for split in SPLITS
            if all(row.get(split) is not None for row in rows)
        }

    def claim(self) -> None:
        """Refuse a folder with results of another setting, which would be taken for those of this one."""
        path, mine = self.out / "setting.json", asdict(self.setting) | {"threads": None, "data": None, "ablation": None}
        mine = json.loads(json.dumps(mine))
        if path.is_file() and json.loads(path.read_text(encoding="utf-8")) != mine:
            raise SystemExit(f"{self.out} holds results of another setting; name another folder with --results")
        write_json(path, mine)

    def kept(self, name: str, compute: Callable[[], Row], *, wait: bool = True) -> Row:
        """Read what an arm came to, or compute it; one that another process computes is waited for.

        Without `wait` it is refused: `Held`.
        """
        if (known := self._known(name)) is not None:
            return known
        with ExitStack() as stack:
            try:
                stack.enter_context(self._alone(name, wait=wait))
            except IllegalInput as error:
                raise Held(name) from error
            if (known := self._known(name)) is not None:
                return known
            print(f"  {self.setting.task} seed {self.setting.seed}: {name}", flush=True)
            found = compute()
            write_json(self.out / "arms" / f"{name}.json", found)
        return found

    def _known(self, name: str) -> Row | None:
        path = self.out / "arms" / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    def _alone(self, name: str, *, wait: bool = True) -> AbstractContextManager[None]:
        return alone_in(self.out / "locks" / name, wait=wait)

    def otherwise(self, **changes: Any) -> Method:
        """Give the method with something changed."""
        return replace(self.method, **changes)


def _digest(model: nn.Module) -> str:
    return hashlib.sha256(save({name: one.contiguous() for name, one in model.state_dict().items()})).hexdigest()[:16]
