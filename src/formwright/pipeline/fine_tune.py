"""The stage that fine-tunes a pretrained model for a task: the teacher of what is compressed from it."""

import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from formwright.arch.embeddings import TokenEmbedding
from formwright.core.errors import FormwrightError, IllegalInput, Unsuccessful
from formwright.core.options import option
from formwright.cost import params
from formwright.pipeline.forecast import BYTES, Forecast
from formwright.pipeline.plan import LOOKS, SLOWED, WRITING, PacedTraining, Planned, WorkAmount
from formwright.pipeline.run import StageRun
from formwright.pipeline.run_folder import kept_stage
from formwright.pipeline.task_choice import USUAL_LENGTH, TaskChoice, TrainingChoice
from formwright.pipeline.teacher_stage import TeacherStage

if TYPE_CHECKING:
    from formwright.arch.card import Card
    from formwright.nn.task_model import TaskModel
    from formwright.pipeline.model_times import ModelTimes
    from formwright.pipeline.start_model import PretrainedForTask
    from formwright.pipeline.study_place import Opened
    from formwright.pipeline.task_models import Weakness
    from formwright.train.fit import Training
    from formwright.train.hyperparameters import Hyperparameters
    from formwright.train.prepare import Prepared

MODEL = "model"  # the folder of the fine-tuned model
MOVEMENT = "movement.safetensors"
TEACHER: Literal["teacher"] = "teacher"  # its name among the delivered models
_LEAST_STEPS = 40
_MOST_FASTER = 4.0  # what 40 steps of MiniLM were tried with


class WeakTeacher(Unsuccessful):
    """Say that a teacher is hardly better than an answer that ignores the input."""

    def __init__(self, message: str, weakness: "Weakness") -> None:
        super().__init__(message)
        self.weakness = weakness


@dataclass(frozen=True, eq=False)
class FineTuned:
    """A fine-tuned model and the task that it was fine-tuned for, each read when it is first asked for."""

    stage: "FineTune"
    run: StageRun

    @cached_property
    def model(self) -> "TaskModel":
        return read_teacher_model(self.run.folder / MODEL)

    @property
    def prepared(self) -> "Prepared":
        """Give the task in the arrays that the model reads."""
        return self.stage.pretrained(self.run).prepared


def read_teacher_model(folder: Path) -> "TaskModel":
    """Read a model that `save_task_model` wrote; refuse one that is damaged."""
    from formwright.nn.hf.load import from_hf
    from formwright.nn.task_model import TaskModel
    from formwright.tasks.pretrained_tokeniser import read_tokeniser

    try:
        model = from_hf(folder).model()
        if not isinstance(model, TaskModel):
            raise IllegalInput("it has no task head")
        if isinstance(model.transformer.card.stacks[0].embedding, TokenEmbedding):
            read_tokeniser(folder)  # which the search will need
    except FormwrightError as error:
        detail = str(error).rstrip(".")
        raise IllegalInput(f"cannot read {folder}: {detail}; remove the folder, and its stage runs again") from None
    return model


@dataclass(frozen=True)
class FineTune(TeacherStage, Planned):
    """Fine-tune a pretrained model for a task; one that answers the task already is kept as it is.

    `training` without steps trains for `epochs`; without a length it reads as many tokens as cover 95 % of the training
    rows, at most 256; without threads it uses all processors. With `movement`, heads and channels are scored by how
    their weights move meanwhile, with `hidden` the hidden numbers too.
    """

    NAME: ClassVar[str] = "teacher"
    TRAINING: ClassVar[PacedTraining | None] = PacedTraining()

    task: TaskChoice = option(about="the task")
    model: str = option("", "folder of a model or its name on the hub; empty: the MiniLM of the extra `demo`")
    epochs: float = option(3.0, "epochs of fine-tuning")
    training: TrainingChoice = option(
        TrainingChoice(batch=32, learning_rate=5e-5, warmup=0.1, dropout=0.1, threads=None), "how it is trained"
    )
    hastened: bool = option(False, "raise the learning rate where hours leave fewer steps than the epochs have")
    movement: bool = option(False, "score heads and channels by the movement of their weights")
    hidden: bool = option(False, "score the movement of the hidden size too")
    accept_weak: bool = option(False, "continue with a model that is hardly better than a constant answer", extent=True)
    seed: int = option(0, "random seed", least=0, most=2**63 - 1)

    def __post_init__(self) -> None:
        if not 0 < self.epochs < math.inf:  # NaN too
            raise IllegalInput(f"epochs must be above 0, not {self.epochs}")

    # --- what follows from the options -------------------------------------------------------------------------------

    def pretrained(self, run: StageRun) -> "PretrainedForTask":
        """Give the model and the task, read once."""
        from formwright.pipeline.start_model import read_pretrained

        def read() -> "PretrainedForTask":
            return read_pretrained(self.model, run.task(self.task), self.training.length)

        return cast("PretrainedForTask", run.run.once(self._source, read))

    def card(self, run: StageRun) -> "Card":
        """Give the design of the model, which is known before it is fine-tuned."""
        return self.pretrained(run).card

    def title(self, run: StageRun) -> str:
        """Name the model for readers."""
        return self.pretrained(run).name

    @property
    def _source(self) -> tuple[Any, ...]:
        return "pretrained", self.model, self.task, self.training.length

    def training_of(self, run: StageRun) -> "Training":
        """Give the training, with its dropout in the model's own settings; the plan says how many steps it has."""
        made = self.training.make(1)
        settings = replace(self.pretrained(run).imported.settings, dropout=self.training.dropout or 0.0)
        return replace(made, recipe=replace(made.recipe, seed=self.seed), settings=settings)

    def is_trained(self, run: StageRun) -> bool:
        """Tell whether the model is trained: one that answers the task is not, unless its movement is asked for."""
        return self.movement or not self.pretrained(run).is_finetuned

    def steps_of(self, epochs: float, run: StageRun) -> int:
        """Count the steps of some epochs."""
        return self.training.epoch_steps(epochs, len(self.pretrained(run).prepared.train.examples))

    def rate(self, steps: int, run: StageRun) -> float:
        """Give the peak learning rate: by the square root higher where hours leave fewer steps than usual."""
        rate, usual = self.training.learning_rate or 0.0, self.steps_of(self.epochs, run)
        if not self.hastened or steps >= usual:
            return rate
        return rate * min(_MOST_FASTER, math.sqrt(usual / max(steps, 1)))

    # --- the plan of time --------------------------------------------------------------------------------------------

    def times(self, run: StageRun) -> "ModelTimes":
        """Time the model on this machine; other stages are planned by it too."""
        from formwright.pipeline.model_times import measured_times
        from formwright.train.fit import task_model

        read, training = self.pretrained(run), self.training_of(run)

        def make(how: "Training") -> "TaskModel":
            return task_model(read.imported, read.prepared, how)

        return cast("ModelTimes", run.timed(self._source, lambda: measured_times(make, read.prepared, training)))

    def amounts(self, run: StageRun) -> dict[str, WorkAmount]:
        steps = self.steps_of(self.epochs, run) if self.is_trained(run) else 0
        return {"steps": WorkAmount(steps, min(steps, _LEAST_STEPS), steps, "teacher steps")}

    def speeds(self, run: StageRun) -> dict[str, float]:
        times = self.times(run)
        return {"step": times.step, "judging": times.judging, SLOWED: times.slowed}

    def seconds(self, amounts: Mapping[str, int], speeds: Mapping[str, float], run: StageRun) -> float:
        written = (1 + LOOKS) * speeds["judging"] + speeds[SLOWED] * WRITING
        return amounts["steps"] * speeds["step"] + written

    def forecast(self, run: StageRun) -> Forecast:
        """Estimate the disk that the teacher takes; the plan of time has the rest."""
        return Forecast(disk=BYTES * params(self.pretrained(run).imported.card))

    def describe(self, amounts: Mapping[str, int], run: StageRun) -> str:
        name, steps = self.pretrained(run).name, amounts["steps"]
        if not steps:
            return f"{name} answers the task already"
        return f"{steps:,} steps of fine-tuning {name} at a rate of {self.rate(steps, run):.2g}"

    # --- the stage ---------------------------------------------------------------------------------------------------

    def resolved(self, run: StageRun) -> "FineTune":
        """Settle paths, length, device and threads; a run that is resumed keeps the device and the threads it had.

        Report how many rows are cut at the length.
        """
        from formwright.train.device import choose_device
        from formwright.train.prepare import cut_rows

        model = str(Path(self.model).resolve()) if self.model and os.path.isdir(self.model) else self.model
        kept, given = getattr(kept_stage(run), "training", None), self.training
        found = replace(
            self,
            model=model,
            task=self.task.absolute(),
            training=replace(
                given.with_threads(kept),
                device=given.device if given.device != "auto" else (kept and kept.device) or choose_device().type,
            ),
        )
        read = found.pretrained(run)
        cut = cut_rows(read.prepared, read.card)
        if cut is not None and (report := cut.report(is_default=given.length is None)):
            run.tell(report)
        length = read.prepared.length or given.length or USUAL_LENGTH  # images have no length
        found = replace(found, training=replace(found.training, length=length))
        run.run.once(found._source, lambda: read)
        return found

    def check(self, run: StageRun) -> None:
        """Refuse a training that cannot be; tell what is left out of model and rows."""
        read = self.pretrained(run)
        self.training_of(run)
        if read.replaced:
            run.tell(read.replaced)

    def contents(self, run: StageRun) -> Mapping[str, Any]:
        return self.pretrained(run).digests()

    def make(self, run: StageRun) -> None:
        """Fine-tune the model and write it; refuse one that is hardly better than a constant answer."""
        from formwright.pipeline.task_models import find_weakness, save_task_model

        read = self.pretrained(run)
        trained = self._trained(run) if self.is_trained(run) else None
        # of a model that answers the task already, only the movement is asked for
        model = self._initial(run) if trained is None or read.is_finetuned else trained
        with run.progress("judging the teacher", 1) as tell:
            scores = save_task_model(model, read.prepared, run.folder / MODEL, {"fine-tuned from": read.name})
            tell(0, None)
        weakness = find_weakness(read.prepared, *scores)
        if weakness is not None and self.accept_weak:
            run.tell(f"the teacher is {weakness}; it is used anyway, because accept_weak is set")
        elif weakness is not None:
            raise self._too_weak(weakness, run)

    def _initial(self, run: StageRun) -> "TaskModel":
        from formwright.train.device import choose_device
        from formwright.train.fit import task_model

        read, training = self.pretrained(run), self.training_of(run)
        return task_model(read.imported, read.prepared, training).to(choose_device(training.device))

    def _trained(self, run: StageRun) -> "TaskModel":
        from formwright.pipeline.pacing import train_paced
        from formwright.pipeline.score_parts import write_importance
        from formwright.supernet.importance import ImportanceTracker
        from formwright.train.device import threads
        from formwright.train.fit import task_stream
        from formwright.train.losses import loss_of

        read, training = self.pretrained(run), self.training_of(run)
        watched = ImportanceTracker(self._initial(run), hidden=self.hidden)

        def recipe(steps: int) -> "Hyperparameters":
            return replace(training.recipe, steps=steps, learning_rate=self.rate(steps, run))

        stream, loss = task_stream(read.prepared, training.recipe), loss_of(read.prepared.task.kind)
        with threads(training.threads):
            train_paced(run, "fine-tuning", watched, stream, loss, recipe, self.steps_of(self.epochs, run))
        if self.movement:
            write_importance(run.folder / MOVEMENT, watched.importance())
        return watched.model

    def _too_weak(self, weakness: "Weakness", run: StageRun) -> WeakTeacher:
        hours = "" if run.options.hours is None else f" or more hours (now {run.options.hours:g})"
        return WeakTeacher(
            f"the teacher is {weakness}. What it teaches is worth no more. Fine-tune it longer, with more epochs (now "
            f"{self.epochs:g}){hours}, or at a higher learning rate (now {self.training.learning_rate:g}), in another "
            "folder or overwriting this one; or accept it with accept_weak",
            weakness,
        )

    def load(self, run: StageRun) -> FineTuned:
        return FineTuned(self, run)

    def note(self, run: StageRun, opened: "Opened") -> None:
        """Test the model, and note it once among the models of a study; it is measured in turns with the others."""
        from formwright.cost import macs
        from formwright.evaluate.context import Context
        from formwright.evaluate.evaluation_file import evaluation_of
        from formwright.evaluate.final import score_without_training
        from formwright.nn.hf.side_files import write_evaluation
        from formwright.pipeline.delivered import MODELS, Delivered, delivered
        from formwright.pipeline.run_folder import FINAL
        from formwright.study.identity import own_name

        if TEACHER in delivered(opened):
            return
        run.tell("testing the teacher")
        found, out = run.artifact(self), opened.place.folder
        verdict = score_without_training(found.model, found.prepared, Context(folder=out / FINAL / TEACHER))
        folder = out / MODELS / TEACHER
        shutil.copytree(run.folder / MODEL, folder, dirs_exist_ok=True)
        write_evaluation(folder, evaluation_of(found.prepared, verdict.validation, verdict.test, verdict.evidence))
        costs = {"macs": float(macs(found.model.transformer.card, self.training.length or USUAL_LENGTH))}
        noted = Delivered.of(verdict, TEACHER, TEACHER, folder, costs, None)
        opened.log.append("note", own_name(), {"model": asdict(noted)})
