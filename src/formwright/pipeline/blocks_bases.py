"""The stages before the blocks of a teacher are trained: times of operations, projections, and narrower embeddings."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from formwright.core.errors import FormwrightError, IllegalInput
from formwright.core.files import read_json, unreadable, write_file, write_json
from formwright.core.options import Stage
from formwright.pipeline.blocks_source import LoadTeacher, Source
from formwright.pipeline.plan import Amount, Planned
from formwright.pipeline.run import StageRun

if TYPE_CHECKING:
    from torch import Tensor

    from formwright.cost.latency_tables import OperationTimes
    from formwright.nn.part_latency import Measured
    from formwright.space.zoo.chains import Menu
    from formwright.supernet.bases import Basis
    from formwright.supernet.narrow_embedding import NarrowEmbedding

TIMES = "times.json"
BASES, EMBEDDINGS, LOSSES = "bases.safetensors", "embeddings.safetensors", "embeddings.json"
_FITTED = 32  # batches of text that bases and embeddings are fitted to
_HELD = 4  # batches of held-out text that embeddings are judged by


@dataclass(frozen=True)
class MeasureOperations(Stage):
    """Measure how long each operation takes on this machine, at each width."""

    NAME = "operation-times"

    source: LoadTeacher

    def make(self, run: StageRun) -> None:
        write_json(run.folder / TIMES, self.measured(run).to_json())

    def load(self, run: StageRun) -> "OperationTimes":
        """Read the times; measure them where a check asks before they are written."""
        if not run.run.force:  # what is to be overwritten is not read
            with suppress(IllegalInput):
                return read_times(run.folder / TIMES, run.artifact(self.source).menu)
        return self.measured(run)

    def measured(self, run: StageRun) -> "OperationTimes":
        from formwright.nn.part_latency import measured_operations, measurements

        source: Source = run.artifact(self.source)

        def measure() -> "OperationTimes":
            run.tell("measuring operations on this machine")
            with run.progress("operations", measurements(source.menu)) as tell:
                return measured_operations(source.menu, measured=timer(source), after=lambda number: tell(number, None))

        found: OperationTimes = run.run.once(self, measure)
        return found


def timer(source: Source) -> "Measured":
    """Give the function that measures a design on the longest held-out piece of text."""
    from formwright.nn.part_latency import quick

    return quick(source.longest)


def read_times(path: Path, menu: "Menu") -> "OperationTimes":
    """Read the times of operations; refuse a file that lacks one of a menu."""
    from formwright.cost.latency_tables import OperationTimes
    from formwright.space.zoo.chains import REAL

    try:
        times = OperationTimes.from_json(read_json(path))
    except FormwrightError as error:
        raise unreadable(path, error) from None
    operations = {(name, width) for name in REAL for width in menu.widths}
    lacking = (
        {*menu.embeddings} - times.embeddings.keys(),
        operations - times.operations.keys(),
        {*combinations(menu.sizes, 2)} - times.joints.keys(),
    )
    if any(lacking):
        raise unreadable(path, "it lacks times of operations")
    return times


@dataclass(frozen=True, eq=False)
class Fitted:
    """The bases of all boundaries between blocks, and the embeddings by their width."""

    bases: "list[Basis]"
    embeddings: "Mapping[int, NarrowEmbedding]"

    @property
    def losses(self) -> dict[int, float]:
        """Give the losses of the embeddings by their width."""
        return {width: found.loss for width, found in self.embeddings.items()}


@dataclass(frozen=True)
class FitBases(Stage, Planned):
    """Fit projections between blocks of several widths, and narrower embeddings, to the teacher."""

    NAME = "bases"

    source: LoadTeacher

    def make(self, run: StageRun) -> None:
        from safetensors.torch import save

        from formwright.supernet.bases import fit_bases, to_tensors
        from formwright.supernet.narrow_embedding import fit_embedding
        from formwright.train.device import threads

        run.tell("fitting projections and embeddings to the teacher")
        source: Source = run.artifact(self.source)
        stream = source.stream(source.stage.seed)
        with threads(1):  # sums of floats depend on their number
            batches = [stream.batch(step).to(source.device) for step in range(_FITTED)]
            bases = fit_bases(source.teacher, batches, source.ends)
            held = source.held_batches(_HELD)
            found = {
                width: fit_embedding(source.teacher, bases[0], width, batches, held) for width in source.menu.embeddings
            }
        named = {f"{width}/{name}": tensor for width, one in found.items() for name, tensor in one.weights.items()}
        write_file(run.folder / EMBEDDINGS, save({name: tensor.cpu().contiguous() for name, tensor in named.items()}))
        write_json(run.folder / LOSSES, {str(width): one.loss for width, one in found.items()})
        write_file(run.folder / BASES, save(to_tensors(bases)))

    def load(self, run: StageRun) -> Fitted:
        from formwright.supernet.bases import from_tensors
        from formwright.supernet.narrow_embedding import NarrowEmbedding

        tensors = read_tensors(run.folder / EMBEDDINGS)
        found = {
            width: NarrowEmbedding(_below(tensors, f"{width}/"), loss)
            for width, loss in embedding_losses(run.folder).items()
        }
        return Fitted(from_tensors(read_tensors(run.folder / BASES)), found)

    def amounts(self, run: StageRun) -> dict[str, Amount]:
        return {}

    def speeds(self, run: StageRun) -> dict[str, float]:
        from formwright.pipeline.blocks_times import fitting_seconds

        return {"fit": fitting_seconds(run.artifact(self.source))}

    def seconds(self, amounts: Mapping[str, int], speeds: Mapping[str, float], run: StageRun) -> float:
        return speeds["fit"]

    def describe(self, amounts: Mapping[str, int], run: StageRun) -> str:
        return "projections and embeddings fitted to the teacher"


def embedding_losses(folder: Path) -> dict[int, float]:
    """Read the losses of the embeddings by their width."""
    return {int(width): float(loss) for width, loss in read_json(folder / LOSSES).items()}


def read_tensors(path: Path) -> "dict[str, Tensor]":
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return load(path.read_bytes())
    except (OSError, SafetensorError) as error:
        raise unreadable(path, error) from None


def _below(tensors: "Mapping[str, Tensor]", prefix: str) -> "dict[str, Tensor]":
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
