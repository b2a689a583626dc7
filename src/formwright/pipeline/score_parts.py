"""The stages that measure and score the parts of a model: heads, channels and hidden numbers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from formwright.core.errors import IllegalInput
from formwright.core.files import read_json, write_json, write_whole
from formwright.core.options import Stage, option
from formwright.cost import LATENCY
from formwright.cost.latency_tables import LatencyTable
from formwright.pipeline.fine_tune import MOVEMENT
from formwright.pipeline.plan import Planned, WorkAmount
from formwright.pipeline.run import StageRun
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.teacher_stage import TeacherStage

if TYPE_CHECKING:
    from formwright.pipeline.start_model import PretrainedForTask
    from formwright.supernet.importance import Importance
    from formwright.train.streams import Batch


_TABLE = "latency.json"


@dataclass(frozen=True)
class MeasureParts(Stage):
    """Measure a pretrained model with fewer heads and channels on this machine, one row at a time on one thread.

    That is done before anything is written, because limits in milliseconds depend on it.
    """

    NAME: ClassVar[str] = "latency"
    COST: ClassVar[str] = LATENCY  # what its table adds up

    task: TaskChoice = option(about="the task, whose rows say how many tokens are read")
    model: str = option("", "folder of a model or its name on the hub; empty: the MiniLM of the extra `demo`")
    length: int | None = option(None, "tokens of a row; null: as many as cover 95 % of the training rows, at most 256")
    hidden: tuple[int, ...] = option((), "hidden sizes in addition to the model's own")

    def resolved(self, run: StageRun) -> "MeasureParts":
        teacher = self._teacher().resolved(run)
        return replace(self, task=teacher.task, model=teacher.model, length=teacher.training.length)

    def _teacher(self) -> Any:
        from formwright.pipeline.fine_tune import FineTune

        plain = FineTune(self.task, self.model)
        return replace(plain, training=replace(plain.training, length=self.length))

    def _pretrained(self, run: StageRun) -> "PretrainedForTask":
        return cast("PretrainedForTask", self._teacher().pretrained(run))

    def check(self, run: StageRun) -> None:
        """Measure the parts; refuse a model whose layers differ."""
        self.load(run)

    def contents(self, run: StageRun) -> Mapping[str, Any]:
        return {"card": self._pretrained(run).card.digest}

    def make(self, run: StageRun) -> None:
        write_json(run.folder / _TABLE, self.load(run).to_json())

    def load(self, run: StageRun) -> LatencyTable:
        """Give the table: that of the folder, or else one that is measured now."""
        return cast(LatencyTable, run.run.once(("latency", run.name), lambda: self._table(run)))

    def _table(self, run: StageRun) -> LatencyTable:
        from formwright.nn.latency import measured_table, quick

        path = run.folder / _TABLE
        try:
            if path.exists() and not run.run.force:
                return LatencyTable.from_json(read_json(path))
        except IllegalInput as error:
            run.tell(f"{path} cannot be read ({error}): the parts are measured again")
        run.tell("measuring the parts of the model on this machine")
        read = self._pretrained(run)
        return measured_table(read.card, self.hidden, measured=quick(read.prepared.length or 1))


Order = Literal["first-order", "movement", "l1", "none"]
BALANCE = 0.75  # how far layers are compared by themselves; of 0, 0.5, 0.75 and 1 the best on SST-2
_IMPORTANCE, _ORDER = "importance.safetensors", "order.safetensors"
_LEAST_BATCHES = 16


@dataclass(frozen=True, eq=False)
class PartScores:
    """Scores of heads and channels: those that a space is drawn up by, and those by which they are put in order."""

    space: "Importance"
    order: "Importance"


@dataclass(frozen=True)
class ScoreParts(Stage, Planned):
    """Score the heads and channels of a trained model: a fine-tuned one, or one that a super-network's stage trained.

    `first-order` scores them by how much the loss on some batches would change without them, `movement` by how their
    weights moved while the model was fine-tuned. `l1` puts them in the order of their weights' size, `none` leaves
    them as they are; the search space is then drawn up by first-order scores all the same.
    """

    NAME: ClassVar[str] = "scores"

    teacher: TeacherStage = option(about="the stage that trains the model")
    order: Order = option("first-order", "how heads and channels are scored")
    batches: int = option(64, "batches that they are scored on", least=1)
    hidden: bool = option(False, "score the numbers of the hidden size too")

    def check(self, run: StageRun) -> None:
        """Refuse a model without parts to score, and an order that its training does not leave."""
        from formwright.supernet.groups import groups, stream_groups
        from formwright.train.fit import head_of

        if self.order == "movement" and not getattr(self.teacher, "movement", False):
            raise IllegalInput("the order is movement, so the teacher must be fine-tuned with movement=true")
        card = self.teacher.card(run)
        groups(card)
        if self.hidden:
            stream_groups(card, head_of(run.task(self.teacher.task)))

    def amounts(self, run: StageRun) -> dict[str, WorkAmount]:
        if self.order == "movement":
            return {}
        return {"batches": WorkAmount(self.batches, min(self.batches, _LEAST_BATCHES), self.batches, "scored batches")}

    def speeds(self, run: StageRun) -> dict[str, float]:
        return {"batch": self.teacher.times(run).step}

    def seconds(self, amounts: Mapping[str, int], speeds: Mapping[str, float], run: StageRun) -> float:
        return amounts.get("batches", 0) * speeds["batch"]

    def describe(self, amounts: Mapping[str, int], run: StageRun) -> str:
        return f"heads and channels scored on {amounts['batches']} batches" if amounts else "movement of the weights"

    def make(self, run: StageRun) -> None:
        from formwright.supernet.importance import balanced, magnitude, uniform

        known = run.artifact(self.teacher).model
        card = known.transformer.card
        if self.order == "movement":
            space = read_importance(run.run.stage(self.teacher).folder / MOVEMENT)
        else:
            space = balanced(self._first_order(run), BALANCE)
        order = space
        if self.order == "l1":
            order = magnitude(dict(known.named_parameters()), card, known.spec, self.hidden)
        elif self.order == "none":
            order = uniform(card)
        write_importance(run.folder / _IMPORTANCE, space)
        write_importance(run.folder / _ORDER, order)

    def _first_order(self, run: StageRun) -> "Importance":
        from formwright.supernet.importance import first_order
        from formwright.train.device import choose_device, threads
        from formwright.train.fit import task_stream
        from formwright.train.losses import loss_of

        found, training = run.artifact(self.teacher), self.teacher.training_of(run.run.stage(self.teacher))
        device, number = choose_device(training.device), run.amount("batches")
        stream, loss = task_stream(found.prepared, training.recipe), loss_of(found.prepared.task.kind)
        with threads(training.threads), run.progress("scoring parts of the teacher", number) as tell:

            def batches() -> "Iterator[Batch]":
                for step in range(number):
                    yield stream.batch(step).to(device)
                    tell(step, None)

            return first_order(found.model.to(device), batches(), loss, hidden=self.hidden)

    def load(self, run: StageRun) -> PartScores:
        return PartScores(read_importance(run.folder / _IMPORTANCE), read_importance(run.folder / _ORDER))


def write_importance(path: Path, importance: "Importance") -> None:
    import numpy as np
    from safetensors.numpy import save

    arrays = {f"group-{number}": scores for number, scores in enumerate(importance.scores)}
    arrays |= importance.through
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, save({name: np.ascontiguousarray(scores) for name, scores in arrays.items()}))


def read_importance(path: Path) -> "Importance":
    """Read what `write_importance` wrote."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    from formwright.supernet.importance import Importance

    try:
        arrays = load_file(path)
    except (OSError, SafetensorError) as error:
        raise IllegalInput(f"cannot read {path}: {error}; remove its folder, and the stage runs again") from None
    number = sum(name.startswith("group-") for name in arrays)
    groups = tuple(arrays[f"group-{index}"] for index in range(number))
    return Importance(groups, {name: scores for name, scores in arrays.items() if not name.startswith("group-")})
