"""What all arms of the compression benchmark share: a task, its teacher, its steps, and a folder for results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors.torch import save
from torch import nn

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.files import write_whole
from formwright.core.options import Stage
from formwright.cost import macs, params
from formwright.evaluate.final import test_once
from formwright.nn.task_model import TaskModel
from formwright.pipeline.draw_space import DrawSpace
from formwright.pipeline.fine_tune import FineTune
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun, Quiet, RunOptions
from formwright.pipeline.run_folder import is_done, mark_done
from formwright.pipeline.runner import prepare
from formwright.pipeline.score_parts import PartScores, ScoreParts
from formwright.pipeline.task_choice import USUAL_LENGTH, TaskChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes.eftnas import USUAL_TRAINING, eftnas
from formwright.search.scores import hypervolume
from formwright.study.folder_lock import alone_in
from formwright.tasks import load_task
from formwright.tasks.kind import kind_of
from formwright.tasks.task import some_rows
from formwright.train.device import threads
from formwright.train.distil import Mix, cached_teacher
from formwright.train.fit import Run
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.judge import answers, compared, judge, truths
from formwright.train.loop import Saving
from formwright.train.prepare import Prepared, PreparedRows

SHARES = (0.75, 0.5, 0.35, 0.25)
SPLITS = ("validation", "test", "further")
ORDERS = ("first-order", "movement", "l1", "none")
Row = dict[str, Any]
S = TypeVar("S", bound=Stage)


def write_json(path: Path, data: Any) -> None:
    """Write plain data whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(data, indent=1))


class Printed(Quiet):
    """Print now and then how far a training is."""

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[int, float | None], None]]:
        def told(step: int, loss: float | None) -> None:
            if (step + 1) % 200 == 0 and loss is not None:
                print(f"    {what}: step {step + 1} of {total}, loss {loss:.4f}", flush=True)

        yield told


class Held(Exception):
    """Say that an arm cannot be had now: another process computes it."""


@dataclass(frozen=True)
class Setting:
    """One task with one seed.

    `epochs` are those of every arm after the teacher, `evaluations` what the search of an arm may judge, `many` what
    the search that it is compared with may. `rates` are those of the teacher, and of everything after it. `ablation`
    are the epochs and the evaluations of arms that are compared with each other alone, where these are fewer. Where
    the task has more training rows than `rows`, models are judged on `further` held-out ones too: they tell more models
    apart than the few test rows. `minutes` is the processor time of each arm of the part `fair`.
    """

    task: str
    data: str | None
    rows: int | None
    length: int
    seed: int
    epochs: float = 6.0
    model: str = ""
    threads: int = 1
    evaluations: int = 150
    many: int = 1000
    rates: tuple[float, float] = (5e-5, 1e-4)
    teacher_epochs: float = 3.0
    ablation: tuple[float, int] | None = None
    further: int = 2500
    minutes: float | None = None


@dataclass(frozen=True, eq=False)
class Bench:
    """A setting with its teacher; the result of an arm is kept as a JSON file, and not computed again."""

    setting: Setting
    out: Path

    @cached_property
    def run(self) -> PipelineRun:
        """Give the run whose stages the arms share: the teacher, and the scores of its parts in every order."""
        setting = self.setting
        training = replace(
            USUAL_TRAINING, learning_rate=setting.rates[0], length=setting.length, threads=setting.threads, device="cpu"
        )
        targets = tuple(f"macs={share:.0%}" for share in SHARES)
        task = TaskChoice(setting.task, setting.data, rows=setting.rows)
        made = eftnas(
            task, model=setting.model, targets=targets, order="movement", training=training, seed=setting.seed
        )
        teacher = replace(made.of_kind(FineTune)[0], epochs=setting.teacher_epochs, hastened=False, accept_weak=True)
        scores = [ScoreParts(teacher, order) for order in ORDERS]
        space, shared = (made.of_kind(kind)[0] for kind in (DrawSpace, TrainShared))
        space = replace(space, teacher=teacher, scores=scores[0])
        shared = replace(shared, space=space, teacher=teacher, order=scores[0], learning_rate=setting.rates[1])
        stages = (teacher, *scores, space, replace(shared, epochs=setting.epochs))
        run = PipelineRun(Pipeline(*stages), self.out, RunOptions(save_every=200), Printed())
        prepare(run)
        return run

    def stage(self, kind: type[S]) -> S:
        """Give the first stage of a kind, with every option settled."""
        return self.run.pipeline.of_kind(kind)[0]

    def made(self, stage: Stage) -> Any:
        """Give the artifact of a stage, made where it is not there yet."""
        here = self.run.stage(stage)
        with self._alone(f"stage-{here.name}"):
            if not is_done(here, "benchmark"):
                stage.make(here)
                mark_done(here, "benchmark")
        return self.run.artifact(stage)

    def scores(self, order: str) -> PartScores:
        """Give the scores by which parts are put in order."""
        found: PartScores = self.made(next(one for one in self.run.pipeline.of_kind(ScoreParts) if one.order == order))
        return found

    @property
    def prepared(self) -> Prepared:
        teacher = self.stage(FineTune)
        return teacher.pretrained(self.run.stage(teacher)).prepared

    @property
    def length(self) -> int:
        return self.stage(FineTune).training.length or USUAL_LENGTH

    @property
    def shared(self) -> TrainShared:
        return self.stage(TrainShared)

    def recipe(self, steps: int) -> Hyperparameters:
        """Give the recipe of the super-network, which rivals have too."""
        return self.shared.training_for(steps).recipe

    def steps(self, epochs: float | None = None) -> int:
        """Count the steps of some epochs, by default those of the setting."""
        teacher = self.stage(FineTune)
        return teacher.steps_of(epochs or self.setting.epochs, self.run.stage(teacher))

    def low_and_high(self) -> tuple[float, float]:
        """Say from where to where the space is drawn up."""
        space = self.stage(DrawSpace)
        (reach,) = space.cost_ranges(self.run.stage(space))
        return reach.low, reach.high

    @property
    def mix(self) -> Mix:
        lesson: Any = self.shared.lesson
        return Mix(labels=lesson.labels, scores=1 - lesson.labels, temperature=lesson.temperature)

    @property
    def answers(self) -> Path:
        return self.out / "answers.safetensors"

    def checkpoints(self, name: str) -> Path:
        return self.out / "checkpoints" / name

    @property
    def card(self) -> Card:
        teacher = self.stage(FineTune)
        return teacher.pretrained(self.run.stage(teacher)).card

    @property
    def metric(self) -> str:
        return self.prepared.task.metric

    def share(self, card: Card) -> float:
        """Give the MACs of a design as a share of the teacher's."""
        return self.cost(card) / self.cost(self.card)

    def cost(self, card: Card) -> float:
        return float(macs(card, self.length))

    @cached_property
    def teacher(self) -> TaskModel:
        found: TaskModel = self.made(self.stage(FineTune)).model
        return found

    @cached_property
    def heard(self) -> nn.Module:
        """Give the teacher with a memory: it is asked once for each row, whatever arms learn from it."""
        known = self.teacher
        with self._alone("teacher-answers"), threads(self.setting.threads):
            return cached_teacher(known, self.prepared, self.answers)

    @contextmanager
    def conduct(self, what: str, folder: Path, steps: int) -> Iterator[Run]:
        """Save a training and print now and then how far it is."""
        with self.run.display.progress(what, steps) as told:
            yield Run(Saving(folder, 200), after_step=told)

    @cached_property
    def further(self) -> PreparedRows | None:
        """Encode training rows that nobody learns from; None where all are learned from."""
        first, number = self.setting.rows, self.setting.further
        rows = load_task(self.setting.task, self.setting.data and Path(self.setting.data)).search_view().train
        if first is None or not number or len(rows) <= first:
            return None
        return self.prepared.part(some_rows(rows, slice(first, first + number)))

    def validated(self, model: nn.Module) -> float:
        """Score a model on validation."""
        return self._score(model, self.prepared.validation)

    def _score(self, model: nn.Module, part: PreparedRows) -> float:
        with threads(1):
            return judge(model, self.prepared, part)[self.metric]

    def judged(self, model: nn.Module, name: str) -> Row:
        """Score a model on validation, on further rows and, once, on test.

        Other weights of the same name are another model.
        """
        prepared, folder = self.prepared, self.out / "final" / name
        label = f"{name} {_digest(model)}"
        with threads(1):
            tested = test_once(model, prepared, label, folder).metrics if prepared.task.has_test else {}
        found = {"validation": self.validated(model), "test": tested.get(self.metric), "further": None}
        if self.further is not None:
            found |= {"further": self._score_further(model, name), "answers": name}
        return found

    def _score_further(self, model: nn.Module, name: str) -> float:
        """Score a model on further rows, and keep which of them it answers right, for intervals of differences."""
        prepared, part = self.prepared, self.further
        assert part is not None
        if kind_of(prepared.task).answer is None:
            return self._score(model, part)
        with threads(1):
            (given,) = answers([model], prepared, part, np.arange(len(part.examples)))
            return self._keep_answers(name, given, truths(part))

    def _keep_answers(self, name: str, given: Any, truth: Any) -> float:
        path = self.out / "right" / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, given == truth)
        return compared(self.prepared, given, truth)[self.metric]

    def judged_majority(self) -> Row:
        """Score the label that is most frequent among the training rows, on further rows."""
        prepared = self.prepared
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
        chance = self.prepared.task.chance or 0.0
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
        """Read the result of an arm, or compute it; one that another process computes is waited for.

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


def _digest(model: nn.Module) -> str:
    return hashlib.sha256(save({name: one.contiguous() for name, one in model.state_dict().items()})).hexdigest()[:16]
