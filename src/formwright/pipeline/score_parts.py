"""The stage that scores the heads and channels of a fine-tuned model: which are left out first, and which last."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from formwright.core.errors import IllegalInput
from formwright.core.files import write_whole
from formwright.core.options import Stage, option
from formwright.pipeline.fine_tune import MOVEMENT, FineTune
from formwright.pipeline.plan import Amount, Planned
from formwright.pipeline.run import StageRun

if TYPE_CHECKING:
    from formwright.supernet.importance import Importance
    from formwright.train.streams import Batch

Order = Literal["first-order", "movement", "l1", "none"]
BALANCE = 0.75  # how far layers are compared by themselves; of 0, 0.5, 0.75 and 1 the best on SST-2
_IMPORTANCE, _ORDER = "importance.safetensors", "order.safetensors"
_LEAST_BATCHES = 16


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of heads and channels: those that a space is drawn up by, and those by which they are put in order."""

    space: "Importance"
    order: "Importance"


@dataclass(frozen=True)
class ScoreParts(Stage, Planned):
    """Score the heads and channels of a fine-tuned model.

    `first-order` scores them by how much the loss on some batches would change without them, `movement` by how their
    weights moved while the model was fine-tuned. `l1` puts them in the order of their weights' size, `none` leaves
    them as they are; the search space is then drawn up by first-order scores all the same.
    """

    NAME: ClassVar[str] = "scores"

    teacher: FineTune = option(about="the stage that fine-tunes the model")
    order: Order = option("first-order", "how heads and channels are scored")
    batches: int = option(64, "batches that they are scored on", least=1)

    def __post_init__(self) -> None:
        if self.batches < 1:
            raise IllegalInput(f"batches must be at least 1, not {self.batches}")

    def check(self, run: StageRun) -> None:
        """Refuse movement that nobody follows."""
        if self.order == "movement" and not self.teacher.movement:
            raise IllegalInput("the order is movement, so the teacher must be fine-tuned with movement=true")

    def amounts(self, run: StageRun) -> dict[str, Amount]:
        """Say how many batches are scored."""
        if self.order == "movement":
            return {}
        return {"batches": Amount(self.batches, min(self.batches, _LEAST_BATCHES), self.batches, "scored batches")}

    def speeds(self, run: StageRun) -> dict[str, float]:
        """Time a batch, which takes about as long as a training step."""
        return {"batch": self.teacher.times(run).step}

    def seconds(self, amounts: Mapping[str, int], speeds: Mapping[str, float], run: StageRun) -> float:
        """Estimate the time of the batches."""
        return amounts.get("batches", 0) * speeds["batch"]

    def describe(self, amounts: Mapping[str, int], run: StageRun) -> str:
        """Say on how many batches parts are scored."""
        return f"heads and channels scored on {amounts['batches']} batches" if amounts else "movement of the weights"

    def make(self, run: StageRun) -> None:
        """Score the parts."""
        from formwright.supernet.importance import balanced, magnitude, uniform

        known = run.artifact(self.teacher).model
        card = known.transformer.card
        if self.order == "movement":
            space = read_importance(run.run.stage(self.teacher).folder / MOVEMENT)
        else:
            space = balanced(self._first_order(run), BALANCE)
        order = space
        if self.order == "l1":
            order = magnitude(dict(known.named_parameters()), card, known.spec if self.teacher.hidden else None)
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

            return first_order(found.model.to(device), batches(), loss, hidden=self.teacher.hidden)

    def load(self, run: StageRun) -> Scores:
        """Read the scores."""
        return Scores(read_importance(run.folder / _IMPORTANCE), read_importance(run.folder / _ORDER))


def write_importance(path: Path, importance: "Importance") -> None:
    """Write scores whole."""
    import numpy as np
    from safetensors.numpy import save

    arrays = {f"group-{number}": scores for number, scores in enumerate(importance.scores)}
    arrays |= {} if importance.hidden is None else {"hidden": importance.hidden}
    arrays |= {} if importance.pooled is None else {"pooled": importance.pooled}
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
    return Importance(groups, arrays.get("hidden"), arrays.get("pooled"))
