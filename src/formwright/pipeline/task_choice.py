"""Which task a run is for, and how its models are trained: plain values that stages share."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from formwright.core.options import option
from formwright.tasks.frame_options import FrameOptions

if TYPE_CHECKING:
    from formwright.tasks.task import Task
    from formwright.train.fit import Training


USUAL_LENGTH = 64  # tokens of a row, where nothing else decides it


@dataclass(frozen=True)
class TaskChoice:
    """Name a task and where its rows come from; `kind` says what its labels are where that shall not be guessed."""

    name: str = option(about="a task (`formwright list tasks`), or a CSV, TSV or JSON file")
    data: str | None = option(None, "folder with the files of a task that is not built in")
    official_dev: bool = option(False, "validate on the whole official dev set; no test rows are kept")
    text: tuple[str, ...] = option((), "text columns of your own file")
    label: str = option("", "label column of your own file, or several columns of 0 and 1")
    rows: int | None = option(None, "train on the first N rows only", least=1)
    kind: str = option("", "what the labels of your own file are: classification, regression or multi-label")
    series: str = option("", "column of your own file that names the series, where a row is one step of it")
    frames: FrameOptions | None = option(None, "frames of recordings, where not the usual ones are wanted")

    def load(self) -> "Task":
        from formwright.tasks import load_task
        from formwright.tasks.task import shortened

        data = None if self.data is None else Path(self.data)
        columns = (self.text, self.label, self.kind, self.series)
        task = load_task(self.name, data, self.official_dev, *columns, frames=self.frames)
        return task if self.rows is None else shortened(task, self.rows)

    def absolute(self) -> "TaskChoice":
        """Give the choice with the paths of the user's own files made absolute: a run is resumed from anywhere."""
        from formwright.tasks import FROM_DATA, TASKS

        own = self.name not in (*TASKS.names(), *FROM_DATA) and Path(self.name).exists()
        return replace(
            self,
            name=str(Path(self.name).resolve()) if own else self.name,
            data=None if self.data is None else str(Path(self.data).resolve()),
        )


@dataclass(frozen=True)
class TrainingChoice:
    """Say how designs are trained, and on which device they are trained, judged and measured.

    `steps` and `length` of None are taken from the data: `default_steps`, or ten epochs of few rows. A run on this
    machine keeps the device that `auto` stood for, and the number of threads, so that it is resumed with the same.
    """

    steps: int | None = option(None, "training steps (default: default_steps, fewer for few rows)", least=1)
    batch: int = option(64, "rows in a batch", least=1)
    learning_rate: float | None = option(2e-3, "peak learning rate")
    warmup: float = option(0.3, "share of the steps during which the learning rate rises")
    decay: str = option("linear", "how the learning rate falls: linear, cosine or none")
    weight_decay: float = option(0.01, "weight decay of AdamW")
    length: int | None = option(None, "maximum number of tokens in a row (default: covers 95 % of the training rows)")
    dropout: float | None = option(0.0, "dropout rate", least=0, most=1)
    device: str = option("auto", "where models run: auto, cpu, cuda or mps", extent=True)
    default_steps: int = option(300, "training steps where the data do not call for fewer", least=1)
    threads: int | None = option(1, "threads of one process; null: as many as there are cores", least=1)
    augment: str = option("", "changes of training inputs at every step: shift, flip, those of packages")

    def with_threads(self, kept: "TrainingChoice | None") -> "TrainingChoice":
        """Settle the number of threads: that of the run that is resumed, if it is not given, or all cores."""
        return replace(self, threads=self.threads or (kept and kept.threads) or os.cpu_count() or 1)

    def epoch_steps(self, epochs: float, rows: int) -> int:
        """Count the steps of some epochs of the training rows."""
        return max(1, round(epochs * -(-rows // self.batch)))

    def make(self, steps: int | None = None) -> "Training":
        from formwright.nn.settings import Settings
        from formwright.train.fit import Training
        from formwright.train.hyperparameters import Hyperparameters

        number = steps or self.steps or self.default_steps
        assert self.learning_rate is not None, "the learning rate is settled before a training is made"
        recipe = Hyperparameters(
            number,
            self.batch,
            self.learning_rate,
            self.warmup,
            self.decay,  # type: ignore[arg-type]
            self.weight_decay,
            augment=self.augment,
        )
        settings = Settings(dropout=self.dropout or 0.0)
        length = self.length or USUAL_LENGTH
        return Training(recipe, length, settings, device=self.device, threads=self.threads or os.cpu_count() or 1)
