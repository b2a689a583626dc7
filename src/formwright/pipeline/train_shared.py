"""The stage that trains shared weights: one super-network, out of which every design of a space reads its own."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from formwright.core.errors import IllegalInput
from formwright.core.options import Stage, describe, option
from formwright.cost import params
from formwright.pipeline.forecast import BYTES, Forecast
from formwright.pipeline.plan import SLOWED, PacedTraining, Planned, WorkAmount
from formwright.pipeline.run import StageRun
from formwright.pipeline.run_folder import kept_stage
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.pipeline.teacher_stage import TeacherStage
from formwright.space.space import Space
from formwright.supernet.hull import find_hull, has_order, reads_all
from formwright.supernet.lessons import Labels, Lesson
from formwright.supernet.rules import Rule, Uniform
from formwright.train.updates import SUM, Update

if TYPE_CHECKING:
    from formwright.arch.card import Card
    from formwright.evaluate.shared import SharedWeights
    from formwright.nn.inherit import Reading
    from formwright.pipeline.model_times import ModelTimes
    from formwright.pipeline.shared_start import StartWeights
    from formwright.train.fit import Training
    from formwright.train.prepare import Prepared

_LEAST_STEPS, _MOST_EPOCHS = 60, 20  # that are worth doing, whatever the hours
_STEPS = 2_000  # of a training whose user gave neither steps nor epochs
_USUAL = TrainingChoice()


@dataclass(frozen=True)
class TrainShared(TeacherStage, Planned):
    """Train all designs of a space together, with the weights of one super-network.

    Without a `teacher` the super-network has fresh weights: those of the largest design, out of which all others are
    cut, or, where a space chooses between kinds of layers, a library with weights for each kind at each place. With a
    teacher it begins with the teacher's weights. Where they hold all designs, heads and channels are put into the order
    of importance that the stage `order` found, if there is one, the largest design is cut out of them, if the teacher
    is larger still, and an embedding that all designs have whole is not trained. A teacher is any stage that leaves a
    model for the task: a fine-tuned one, or another training of this kind. Where it has a training, its length, device
    and threads are used. `start` gives weights without teaching. Weights are taken where tensors have a common part,
    which goes where a design of that size reads it; the run says how many tensors that were. `depth=even` is what
    DynaBERT does, and `channels=cyclic` what ViTAS does.
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
    update: Update = option(SUM, "how the gradients of a step's designs are joined (`formwright list updates`)")
    depth: Literal["first", "even"] = option(
        "first", "which layers a design of fewer layers has: the first ones, or evenly spaced ones"
    )

    channels: Literal["first", "cyclic"] = option(
        "first", "which heads and channels a narrower design has: the first ones, or each about equally often"
    )
    start: str | Stage | None = option(
        None, "weights to start with, where tensors fit: the folder of a model, its name on the hub, or a stage"
    )

    def __post_init__(self) -> None:
        if self.steps is not None and self.epochs is not None:
            raise IllegalInput("give steps or epochs of a super-network, not both")
        if self.steps is not None and self.steps < 1:
            raise IllegalInput(f"steps must be at least 1, not {self.steps}")
        if self.epochs is not None and not 0 < self.epochs < math.inf:  # NaN too
            raise IllegalInput(f"epochs must be above 0, not {self.epochs}")
        self.lesson.check(self.rule, has_teacher=self.teacher is not None)
        if self.update.NEEDS_LARGEST and not self.rule.LARGEST_FIRST:
            raise IllegalInput(
                f"the update {self.update.NAME} needs a rule that trains the largest design at every step, such as "
                f"sandwich, and {self.rule.NAME} does not"
            )
        if self.start is not None and self.teacher is not None:
            raise IllegalInput("a teacher's weights start the super-network already: give teacher or start, not both")
        if self.channels == "cyclic" and (self.start is not None or self.order is not None):
            raise IllegalInput(
                "cyclic channels have no order, and designs of other sizes begin elsewhere: leave out "
                f"{'start' if self.order is None else 'order'}, or choose channels=first"
            )
        if self.channels == "cyclic" and "layers" in self.lesson.SIGNALS:
            raise IllegalInput(
                f"the lesson {self.lesson.NAME} compares the first channels of layers, and with cyclic channels "
                "designs of other sizes have other ones there: choose channels=first, or another lesson"
            )
        if self.order is not None and self.teacher is None:
            raise IllegalInput("only the parts of a teacher can be reordered: name the stage that makes it")

    def found_space(self, run: StageRun) -> Space:
        return run.space(self.space)

    def card(self, run: StageRun) -> "Card":
        """Give the design whose weights all others share; where a stage makes the space, the largest it may have."""
        if self.teacher is None:
            return find_hull(self._known_space(run)).largest
        taught = cast("Card", cast(Any, self.teacher).card(run))
        drawn = isinstance(self.space, Stage)
        if drawn and not hasattr(self.space, "example"):
            return taught  # it is that of the teacher's sub-networks
        hull = find_hull(self._known_space(run))
        return taught if not hull.whole and (drawn or reads_all(hull.space, taught)) else hull.largest

    def whole_design(self, run: StageRun) -> "Card | None":
        """Give the design out of whose weights all others are read; None where a library holds them.

        None, too, where that is not known before another stage is made.
        """
        if isinstance(self.space, Stage) or not has_order(self.found_space(run)):
            return None
        hull = find_hull(self.found_space(run))
        return hull.largest if hull.whole else None

    def reading(self, space: Space) -> "Reading":
        """Say which layers and channels the designs of the space read."""
        from formwright.nn.inherit import Reading
        from formwright.supernet.cyclic import CyclicOffsets

        return Reading(self.depth, CyclicOffsets.of(space) if self.channels == "cyclic" else None)

    def title(self, run: StageRun) -> str:
        """Name the model for readers."""
        return f"the largest design of {self.found_space(run).name}"

    def training_of(self, run: StageRun) -> "Training":
        """Give the training; the plan says how many steps it has."""
        return self.training_for(1)

    def _known_space(self, run: StageRun) -> Space:
        """Give the space; where a stage makes it, the stage's example, before and after: its designs read the same."""
        example = getattr(self.space, "example", None)
        return self.found_space(run) if example is None else cast(Space, example(run))

    # --- the stage ---------------------------------------------------------------------------------------------------

    def resolved(self, run: StageRun) -> "TrainShared":
        from formwright.tasks.row_length import FROM_SCRATCH
        from formwright.train.prepare import usual_length

        training = self._settled_training(run)
        found = replace(self, task=self.task.absolute(), training=training)
        if isinstance(self.start, str) and Path(self.start).exists():
            found = replace(found, start=str(Path(self.start).resolve()))
        if found.teacher is None:
            largest = find_hull(found._known_space(run)).largest
            if isinstance(found.start, str) and (start := found.start_weights(run)) is not None:
                start.check(largest)
            if training.length is None:
                read = found._tokeniser(run)
                length = usual_length(run.task(found.task), largest, FROM_SCRATCH, read)
                found = replace(found, training=replace(training, length=length))
            prepared = found._prepared_alone(run)
            return replace(found, steps=found.steps_of(prepared), epochs=None)
        return found  # what it reads, only its teacher knows

    def _settled_training(self, run: StageRun) -> TrainingChoice:
        """Settle device and threads; with a teacher, they and the length are the teacher's, and the run says so."""
        from formwright.train.device import choose_device

        given = self.training.with_threads(getattr(kept_stage(run), "training", None))
        given = replace(given, device=choose_device(given.device).type)
        read = getattr(self.teacher, "training", None)
        if read is None:
            return given
        taken = {name: getattr(read, name) for name in ("length", "device", "threads")}
        for name, value in taken.items():
            own = getattr(given, name)
            if value is not None and getattr(self.training, name) != getattr(_USUAL, name) and own != value:
                run.tell(
                    f"{run.name} uses {name}={value} of its teacher in place of {name}={own}: set training.{name} of "
                    "the teacher's stage for another value"
                )
        return replace(given, **taken)

    def check(self, run: StageRun) -> None:
        from formwright.arch.heads import check_head
        from formwright.train.fit import head_of

        self.training_for(1)
        if isinstance(self.space, Stage) and not hasattr(self.space, "example"):
            return  # nothing more is known before it is drawn up
        hull = find_hull(self._known_space(run))
        self.rule.bind(hull, 1)
        if (self.depth, self.channels) != ("first", "first") and not hull.whole:
            raise IllegalInput(
                f"space {hull.space.name!r} chooses between kinds of layers, each at its place: evenly spaced layers "
                "and cyclic channels are for spaces with a largest design"
            )
        check_head(hull.largest, head_of(run.task(self.task)))
        taught = self.lesson.NEEDS_TEACHER and isinstance(self.teacher, TeacherStage)
        self.lesson.check_designs(hull, cast(TeacherStage, self.teacher).card(run) if taught else None)

    def contents(self, run: StageRun) -> Mapping[str, Any]:
        from formwright.tasks.task import contents

        start = self.start_weights(run) if isinstance(self.start, str) else None
        return {**contents(run.task(self.task)), **({} if start is None else {"start": start.digest})}

    def make(self, run: StageRun) -> None:
        from formwright.pipeline.shared_training import trained_network
        from formwright.pipeline.task_models import find_weakness, save_task_model
        from formwright.supernet.library import LIBRARY, LibraryWeights

        prepared = self._prepared(run)
        network = trained_network(self, run, prepared)
        if self.teacher is None:
            origin = self.found_space(run).name
        else:
            origin = str(getattr(run.artifact(self.teacher), "name", self.teacher.NAME))
        with run.progress("judging the super-network", 1) as tell:
            weights = network.model
            if isinstance(weights, LibraryWeights):
                model = network.extracted(find_hull(self.found_space(run)).largest)
            else:
                model = weights
            scores = save_task_model(model, prepared, run.folder, {"super-network of": origin})
            if isinstance(weights, LibraryWeights):
                weights.save(run.folder / LIBRARY)
            tell(0, None)
        if (weakness := find_weakness(prepared, *scores)) is not None:
            rate = self.training_for(1).recipe.learning_rate
            run.tell(
                f"the largest design is {weakness}. What shares its weights or learns from it may be no better: try a "
                f"lower learning rate (now {rate:g}; --set {run.name}.learning_rate=VALUE) or more steps"
            )

    def load(self, run: StageRun) -> "SharedWeights":
        from formwright.evaluate.shared import SharedWeights

        length = self.training.length or self._prepared(run).length
        return SharedWeights.read(run.folder, run.task(self.task), length, self.reading(self.found_space(run)))

    # --- the plan of time --------------------------------------------------------------------------------------------

    def times(self, run: StageRun) -> "ModelTimes":
        """Time the largest design on this machine."""
        from formwright.pipeline.model_times import measured_times
        from formwright.train.fit import fresh_model

        source = getattr(self.teacher, "times", None)
        if source is not None:
            return cast("ModelTimes", source(run))
        prepared, training = self._read(run), self.training_for(1)
        largest = find_hull(self._known_space(run)).largest

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
            hull, length = find_hull(self._known_space(run)), self.training.length or 1
            smallest = macs(hull.smallest, length) / macs(hull.largest, length)
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
        usual, epoch = self.steps_of(read), self.training.epoch_steps(1.0, len(read.train.examples))
        most = max(usual, _MOST_EPOCHS * epoch)
        return {"steps": WorkAmount(usual, min(_LEAST_STEPS, most), most, "super-network steps")}

    def speeds(self, run: StageRun) -> dict[str, float]:
        times, (middle, smallest) = self.times(run), self.shares(run)
        answer = times.answer if self.lesson.NEEDS_TEACHER and self.teacher is not None else 0.0
        batches = len(self._read(run).train.examples) / self.training.batch
        step, answers = times.step * self.rule.work(middle, smallest), answer * batches
        return {"step": step, "answer": answer, "answers": answers, "judging": times.judging, SLOWED: times.slowed}

    def seconds(self, amounts: Mapping[str, int], speeds: Mapping[str, float], run: StageRun) -> float:
        asked = amounts["steps"] * speeds["answer"]
        if self.keeps_answers(self._read(run)):
            asked = min(asked, speeds["answers"])
        return amounts["steps"] * speeds["step"] + asked + speeds["judging"]

    def forecast(self, run: StageRun) -> Forecast | None:
        """Estimate the disk that the super-network takes, where its space is known before."""
        if isinstance(self.space, Stage):  # which a teacher draws up: its largest design is the teacher
            known = None if self.teacher is None else self.teacher.forecast(run)
            return None if known is None else Forecast(disk=known.disk)
        hull = find_hull(self.found_space(run))
        if hull.whole or self.teacher is not None:
            return Forecast(disk=BYTES * params(hull.largest))
        from formwright.supernet.library import library_of
        from formwright.train.fit import head_of

        held = library_of(hull.space, head_of(run.task(self.task))).tensors.values()
        return Forecast(disk=BYTES * (params(hull.largest) + sum(prod(tensor.shape) for tensor in held)))

    def describe(self, amounts: Mapping[str, int], run: StageRun) -> str:
        return f"{amounts['steps']:,} steps of all sub-networks"

    # --- the training ------------------------------------------------------------------------------------------------

    def _prepared(self, run: StageRun) -> "Prepared":
        if self.teacher is not None:
            return cast("Prepared", run.artifact(self.teacher).prepared)
        start = self.start_weights(run)
        return self._prepared_alone(run, None if start is None else start.tokeniser)

    def _prepared_alone(self, run: StageRun, tokeniser: Any = None) -> "Prepared":
        from formwright.train.prepare import prepare

        tokeniser = tokeniser or self._tokeniser(run)

        def read() -> "Prepared":
            largest = find_hull(self._known_space(run)).largest
            return prepare(run.task(self.task), largest, self.training.length or 0, tokeniser)

        key = ("prepared", self.task, self.training.length, describe(self.space), tokeniser and tokeniser.digest)
        return cast("Prepared", run.run.once(key, read))

    def start_weights(self, run: StageRun) -> "StartWeights | None":
        """Give the weights to start with, if any; those of a stage once it is made."""
        from formwright.pipeline.shared_start import start_weights

        if self.start is None:
            return None
        key = ("start", self.task, self.start if isinstance(self.start, str) else id(self.start))
        return cast("StartWeights", run.run.once(key, lambda: start_weights(self.start, run.task(self.task), run)))

    def _tokeniser(self, run: StageRun) -> Any:
        """Give the tokeniser of the weights to start with; None for that of the task, and before a stage has one."""
        found = self.start_weights(run) if isinstance(self.start, str) else None
        return None if found is None else found.tokeniser

    def steps_of(self, prepared: "Prepared") -> int:
        """Count the training steps: those that were given, or as many as the epochs have."""
        if self.steps is not None or self.epochs is None:
            return self.steps or _STEPS
        return self.training.epoch_steps(self.epochs, len(prepared.train.examples))

    def training_for(self, steps: int) -> "Training":
        """Give the training with a number of steps."""
        made = self.training.make(steps)
        rate = made.recipe.learning_rate if self.learning_rate is None else self.learning_rate
        return replace(made, recipe=replace(made.recipe, learning_rate=rate, seed=self.seed))

    def keeps_answers(self, prepared: "Prepared") -> bool:
        """Return whether a teacher's answers are kept: not if rows change at every step, or if they take much memory.

        Scores of every word, and states of layers, take more memory than they save time.
        """
        from formwright.tasks.kind import kind_of

        return not (kind_of(prepared.task).of_words or self.lesson.SIGNALS or self.training.augment)
