"""The stage that trains shared weights: one super-network, out of which every design of a space reads its own."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from formwright.core.errors import IllegalInput
from formwright.core.options import Stage, describe, option
from formwright.cost import params
from formwright.pipeline.designs import find_space
from formwright.pipeline.forecast import BYTES, Forecast
from formwright.pipeline.plan import SLOWED, PacedTraining, Planned, WorkAmount
from formwright.pipeline.run import StageRun
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.space.space import Space
from formwright.supernet.lessons import Labels, Lesson
from formwright.supernet.rules import Hull, Rule, Uniform, check_readable, hull

if TYPE_CHECKING:
    from torch import nn

    from formwright.evaluate.shared import SharedWeights
    from formwright.nn.task_model import TaskModel
    from formwright.pipeline.model_times import ModelTimes
    from formwright.supernet.network import SuperNetwork
    from formwright.train.fit import Training
    from formwright.train.prepare import Prepared

_LEAST_STEPS, _MOST_EPOCHS = 60, 20  # that are worth doing, whatever the hours
_STEPS = 2_000  # of a training whose user gave neither steps nor epochs
_ANSWERS = "answers.safetensors"  # what the teacher says to every training row, next to the checkpoints


@dataclass(frozen=True)
class TrainShared(Stage, Planned):
    """Train all designs of a space together, as slices of the weights of one super-network.

    Without a `teacher` the super-network is the largest design of the space, with fresh weights. With one it begins
    with the teacher's weights, whose heads and channels are put into the order of importance that the stage `order`
    found, where there is one; an embedding that all designs have whole is not trained then. A teacher is any stage that
    leaves a model for the task: a fine-tuned one, or another training of this kind.
    """

    NAME: ClassVar[str] = "super-network"
    TRAINING: ClassVar[PacedTraining | None] = PacedTraining(included=("answer",), takes_rest=True)

    space: str | Stage | Any = option(about="name of a space, FILE.py:NAME, or the stage that draws it up")
    task: TaskChoice = option(about="the task that all designs are trained for")
    rule: Rule = option(Uniform(), "which designs learn at a step (`formwright list rules`)")
    lesson: Lesson = option(Labels(), "what they learn from (`formwright list lessons`)")
    steps: int | None = option(None, f"training steps; null: as many as the epochs have, or {_STEPS:,}")
    epochs: float | None = option(None, "epochs of the training rows, in place of steps")
    learning_rate: float | None = option(None, "highest learning rate; null: that of the training")
    training: TrainingChoice = option(TrainingChoice(), "how the weights are trained")
    teacher: Stage | None = option(None, "the stage whose model begins and teaches the super-network")
    order: Stage | None = option(None, "the stage that scored the teacher's heads and channels")
    seed: int = option(0, "random seed", least=0, most=2**63 - 1)

    def __post_init__(self) -> None:
        if self.steps is not None and self.epochs is not None:
            raise IllegalInput("give steps or epochs of a super-network, not both")
        if (self.steps is not None and self.steps < 1) or (self.epochs is not None and self.epochs <= 0):
            raise IllegalInput(f"a super-network takes at least 1 step, not {self.steps or self.epochs}")
        if self.lesson.NEEDS_TEACHER and self.teacher is None:
            raise IllegalInput(f"the lesson {self.lesson.NAME} needs a teacher: name the stage that makes it")
        if self.lesson.NEEDS_LARGEST and not self.rule.LARGEST_FIRST:
            raise IllegalInput(
                f"the lesson {self.lesson.NAME} needs a rule that trains the largest design at every step, such as "
                f"sandwich, and {self.rule.NAME} does not"
            )
        if self.order is not None and self.teacher is None:
            raise IllegalInput("only the parts of a teacher can be reordered: name the stage that makes it")

    def found_space(self, run: StageRun) -> Space:
        if isinstance(self.space, Stage):
            drawn = run.artifact(self.space)
            return drawn if isinstance(drawn, Space) else drawn.space
        return self.space if isinstance(self.space, Space) else find_space(self.space)

    # --- the stage ---------------------------------------------------------------------------------------------------

    def resolved(self, run: StageRun) -> "TrainShared":
        from formwright.tasks.row_length import FROM_SCRATCH
        from formwright.train.device import choose_device
        from formwright.train.prepare import usual_length

        training = replace(self.training, device=choose_device(self.training.device).type)
        read = getattr(self.teacher, "training", None)
        if read is not None:  # where, and how many tokens, the teacher reads
            training = replace(training, length=read.length, device=read.device, threads=read.threads)
        found = replace(self, task=self.task.absolute(), training=training)
        if found.teacher is None:
            if training.length is None:
                length = usual_length(run.task(found.task), hull(found.found_space(run)).largest, FROM_SCRATCH)
                found = replace(found, training=replace(training, length=length))
            prepared = found._prepared_alone(run)
            return replace(found, steps=found._steps(prepared), epochs=None)
        return found  # what it reads, only its teacher knows

    def check(self, run: StageRun) -> None:
        from formwright.nn.task_model import check_head
        from formwright.train.fit import head_of

        self._training(1)
        if isinstance(self.space, Stage):
            return  # nothing more is known before it is drawn up
        space = self.found_space(run)
        ends = hull(space)
        self.rule.bind(ends, 1)
        check_readable(space, ends.largest)
        check_head(ends.largest, head_of(run.task(self.task)))

    def contents(self, run: StageRun) -> Mapping[str, Any]:
        from formwright.tasks.task import contents

        return contents(run.task(self.task))

    def make(self, run: StageRun) -> None:
        from formwright.pipeline.task_models import save_task_model

        prepared = self._prepared(run)
        model = self._trained(run, prepared)
        if self.teacher is None:
            origin = self.found_space(run).name
        else:
            origin = str(getattr(run.artifact(self.teacher), "name", self.teacher.NAME))
        with run.progress("judging the super-network", 1) as tell:
            save_task_model(model, prepared, run.folder, {"super-network of": origin})
            tell(0, None)

    def load(self, run: StageRun) -> "SharedWeights":
        from formwright.evaluate.shared import SharedWeights

        length = self.training.length or self._prepared(run).length
        return SharedWeights.read(run.folder, run.task(self.task), length)

    # --- the plan of time --------------------------------------------------------------------------------------------

    def times(self, run: StageRun) -> "ModelTimes":
        """Time the largest design on this machine."""
        from formwright.pipeline.model_times import measured_times
        from formwright.train.fit import fresh_model

        source = getattr(self.teacher, "times", None)
        if source is not None:
            return cast("ModelTimes", source(run))
        prepared, training = self._prepared(run), self._training(1)
        largest = hull(self.found_space(run)).largest

        def measured() -> "ModelTimes":
            return measured_times(lambda how: fresh_model(largest, prepared, how), prepared, training)

        return cast("ModelTimes", run.timed((self.NAME, self.task, describe(self.space)), measured))

    def shares(self, run: StageRun) -> tuple[float, float]:
        """Give the cost of a random design and of the smallest one as shares of the largest one's."""
        from formwright.cost import macs

        drawn = getattr(self.space, "smallest_share", None)
        if drawn is not None:
            smallest = drawn(run)
        else:
            ends, length = hull(self.found_space(run)), self.training.length or 1
            smallest = macs(ends.smallest, length) / macs(ends.largest, length)
        return (1 + smallest) / 2, smallest

    def held_out(self, run: StageRun) -> int:
        """Count the validation rows that designs are judged by."""
        return len(self._read(run).validation.examples)

    def _read(self, run: StageRun) -> "Prepared":
        """Give the task as it is read, which is known before the teacher is made."""
        source: Any = self.teacher
        if source is None:
            return self._prepared_alone(run)
        found: Prepared = source._read(run) if isinstance(source, TrainShared) else source.pretrained(run).prepared
        return found

    def amounts(self, run: StageRun) -> dict[str, WorkAmount] | None:
        """Say how many steps there are; nothing where the time of the teacher is not known before."""
        if self.teacher is not None and not hasattr(self.teacher, "times"):
            return None
        read = self._read(run)
        usual, epoch = self._steps(read), self.training.epoch_steps(1.0, len(read.train.examples))
        most = max(usual, _MOST_EPOCHS * epoch)
        return {"steps": WorkAmount(usual, min(_LEAST_STEPS, most), most, "super-network steps")}

    def speeds(self, run: StageRun) -> dict[str, float]:
        times, (middle, smallest) = self.times(run), self.shares(run)
        answer = times.answer if self.lesson.NEEDS_TEACHER else 0.0
        batches = len(self._read(run).train.examples) / self.training.batch
        step, answers = times.step * self.rule.work(middle, smallest), answer * batches
        return {"step": step, "answer": answer, "answers": answers, "judging": times.judging, SLOWED: times.slowed}

    def seconds(self, amounts: Mapping[str, int], speeds: Mapping[str, float], run: StageRun) -> float:
        asked = min(amounts["steps"] * speeds["answer"], speeds["answers"])
        return amounts["steps"] * speeds["step"] + asked + speeds["judging"]

    def forecast(self, run: StageRun) -> Forecast | None:
        """Estimate the disk that the super-network takes, where its space is known before."""
        if isinstance(self.space, Stage):  # which a teacher draws up: its largest design is the teacher
            known = None if self.teacher is None else self.teacher.forecast(run)
            return None if known is None else Forecast(disk=known.disk)
        return Forecast(disk=BYTES * params(hull(self.found_space(run)).largest))

    def describe(self, amounts: Mapping[str, int], run: StageRun) -> str:
        return f"{amounts['steps']:,} steps of all sub-networks"

    # --- the training ------------------------------------------------------------------------------------------------

    def _prepared(self, run: StageRun) -> "Prepared":
        if self.teacher is None:
            return self._prepared_alone(run)
        found: Prepared = run.artifact(self.teacher).prepared
        return found

    def _prepared_alone(self, run: StageRun) -> "Prepared":
        from formwright.train.prepare import prepare

        def read() -> "Prepared":
            return prepare(run.task(self.task), hull(self.found_space(run)).largest, self.training.length or 0)

        return cast("Prepared", run.run.once(("prepared", self.task, self.training.length, describe(self.space)), read))

    def _steps(self, prepared: "Prepared") -> int:
        if self.steps is not None or self.epochs is None:
            return self.steps or _STEPS
        return self.training.epoch_steps(self.epochs, len(prepared.train.examples))

    def _training(self, steps: int) -> "Training":
        made = self.training.make(steps)
        rate = made.recipe.learning_rate if self.learning_rate is None else self.learning_rate
        return replace(made, recipe=replace(made.recipe, learning_rate=rate, seed=self.seed))

    def _trained(self, run: StageRun, prepared: "Prepared") -> "TaskModel":
        from formwright.pipeline.pacing import train_paced
        from formwright.supernet.network import Following
        from formwright.train.device import choose_device, threads
        from formwright.train.fit import task_stream

        steps = run.first_steps(self._steps(prepared))
        training = self._training(steps)
        network = self._network(run, prepared, training).to(choose_device(training.device))
        stream, loss = Following(task_stream(prepared, training.recipe), network), self.lesson.bind(prepared.task.kind)
        with threads(training.threads):
            train_paced(run, run.name, network, stream, loss, lambda many: self._training(many).recipe, steps)
        return network.model

    def _network(self, run: StageRun, prepared: "Prepared", training: "Training") -> "SuperNetwork":
        from formwright.supernet.network import SuperNetwork, begun_with
        from formwright.train.fit import fresh_model

        ends, steps = hull(self.found_space(run)), training.recipe.steps
        if self.teacher is None:
            return SuperNetwork(fresh_model(ends.largest, prepared, training), self.rule.bind(ends, steps))
        known: TaskModel = run.artifact(self.teacher).model
        check_readable(ends.space, known.transformer.card)
        heard = self._heard(run, known, prepared, training) if self.lesson.NEEDS_TEACHER else None
        scores = None if self.order is None else run.artifact(self.order)
        importance = getattr(scores, "order", scores)  # a stage may leave other scores as well
        start = begun_with(known, importance, whole_embedding=_has_whole_embedding(ends, known))
        return SuperNetwork(start, self.rule.bind(ends, steps), heard)

    def _heard(self, run: StageRun, known: "TaskModel", prepared: "Prepared", training: "Training") -> "nn.Module":
        """Give the teacher as the super-network hears it: from memory, where rows are shown more than once.

        That is decided by the steps with which the training began, so that a run that is resumed hears the same.
        """
        from formwright.train.device import choose_device, threads
        from formwright.train.distil import cached_teacher

        rows = len(prepared.train.examples)
        if training.recipe.steps * training.recipe.batch <= rows:
            return known
        with threads(training.threads), run.progress("answers of the teacher", rows) as tell:
            moved = known.to(choose_device(training.device))
            return cached_teacher(moved, prepared, run.checkpoints / _ANSWERS, lambda number: tell(number - 1, None))


def _has_whole_embedding(ends: Hull, known: "TaskModel") -> bool:
    """Tell whether all designs are encoders with the teacher's whole embedding: training it takes a fifth of a step."""
    cards = (known.transformer.card, ends.largest, ends.smallest)
    return len({card.encoder and card.encoder.embedding for card in cards}) == 1 and all(
        card.decoder is None for card in cards
    )
