"""The stage that measures the parts of a model, so that the latency of its sub-networks can be added up."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from formwright.core.codec import loads
from formwright.core.errors import IllegalInput
from formwright.core.files import read_regular, write_whole
from formwright.core.options import Stage, option
from formwright.cost.latency_tables import LatencyTable
from formwright.pipeline.run import StageRun
from formwright.pipeline.task_choice import TaskChoice

if TYPE_CHECKING:
    from formwright.pipeline.pretrained import Pretrained

_TABLE = "latency.json"


@dataclass(frozen=True)
class MeasureParts(Stage):
    """Measure a pretrained model with fewer heads and channels on this machine, one row at a time on one thread.

    That is done before anything is written, because limits in milliseconds depend on it.
    """

    NAME: ClassVar[str] = "latency"

    task: TaskChoice = option(about="the task, whose rows say how many tokens are read")
    model: str = option("", "folder of a model or its name on the hub; empty: the MiniLM of the extra `demo`")
    length: int | None = option(None, "tokens of a row; null: as many as cover 95 % of the training rows, at most 256")
    hidden: tuple[int, ...] = option((), "hidden sizes besides the model's own")

    def resolved(self, run: StageRun) -> "MeasureParts":
        """Settle paths and length."""
        teacher = self._teacher().resolved(run)
        return replace(self, task=teacher.task, model=teacher.model, length=teacher.training.length)

    def _teacher(self) -> Any:
        from formwright.pipeline.fine_tune import FineTune

        plain = FineTune(self.task, self.model)
        return replace(plain, training=replace(plain.training, length=self.length))

    def _pretrained(self, run: StageRun) -> "Pretrained":
        return cast("Pretrained", self._teacher().pretrained(run))

    def check(self, run: StageRun) -> None:
        """Measure the parts; refuse a model whose layers differ."""
        self.load(run)

    def contents(self, run: StageRun) -> Mapping[str, Any]:
        """Tell the design of the model."""
        return {"card": self._pretrained(run).card.digest}

    def make(self, run: StageRun) -> None:
        """Write the table that was measured."""
        run.folder.mkdir(parents=True, exist_ok=True)
        write_whole(run.folder / _TABLE, json.dumps(self.load(run).to_json(), indent=1))

    def load(self, run: StageRun) -> LatencyTable:
        """Give the table: that of the folder, or else one that is measured now."""
        return cast(LatencyTable, run.run.once(("latency", run.name), lambda: self._table(run)))

    def _table(self, run: StageRun) -> LatencyTable:
        from formwright.nn.part_latency import measured_table, quick

        try:
            if not run.run.force:
                return LatencyTable.from_json(loads(read_regular(run.folder / _TABLE)))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, IllegalInput) as error:
            run.tell(f"{run.folder / _TABLE} cannot be read ({error}): the parts are measured again")
        run.tell("measuring the parts of the model on this machine")
        read = self._pretrained(run)
        return measured_table(read.card, self.hidden, measured=quick(read.prepared.length or 1))
