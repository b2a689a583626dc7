"""How long work shows how far it is: live lines on a terminal, a line now and then elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.cli.output import cell, note
from formwright.core.text import clock
from formwright.pipeline.units import read_steps

if TYPE_CHECKING:
    from rich.columns import Columns
    from rich.console import Group

SECONDS_BETWEEN_LINES = 10.0


@dataclass
class StepProgress:
    """Follow the steps of a training run, from step `first` on; the shown loss is a running mean with a `memory`."""

    what: str
    total: int
    memory: float = 0.95
    done: int = 0
    loss: float | None = None
    first: int | None = None
    began: float = field(default_factory=time.monotonic)

    def step(self, step: int, loss: float | None) -> None:
        """Take note of a step and its loss, where it has one."""
        if self.first is None:
            self.first = step
        self.done = step + 1
        if loss is not None:
            self.loss = loss if self.loss is None else self.memory * self.loss + (1 - self.memory) * loss

    @property
    def seconds_left(self) -> float | None:
        """Estimate the seconds that the other steps take; None before the first step."""
        made = 0 if self.first is None else self.done - self.first
        return (time.monotonic() - self.began) / made * (self.total - self.done) if made else None

    @property
    def line(self) -> str:
        """Say it all in one line."""
        loss = "" if self.loss is None else f", loss {self.loss:.4f}"
        left = "" if self.seconds_left is None else f", {clock(self.seconds_left)} left"
        return f"{self.what}: step {self.done:,} of {self.total:,}{loss}{left}"

    def bar(self) -> "Columns":
        from rich.columns import Columns
        from rich.progress_bar import ProgressBar

        return Columns([ProgressBar(self.total, self.done, width=30), cell(self.line)])


def _live(shown: Callable[[], Any]) -> Any:
    """Draw what a function gives again and again on standard error while a block runs."""
    from rich.console import Console
    from rich.live import Live

    return Live(console=Console(stderr=True), get_renderable=shown, refresh_per_second=4, transient=True)


@contextmanager
def showing(what: str, total: int) -> Iterator[Callable[[int, float | None], None]]:
    """Show the progress of `total` steps on standard error; give the function that is called after each step."""
    progress = StepProgress(what, total)
    if sys.stderr.isatty():
        with _live(progress.bar):
            yield progress.step
        return
    printed, due = 0, time.monotonic() + SECONDS_BETWEEN_LINES

    def after_step(step: int, loss: float | None) -> None:
        nonlocal printed, due
        progress.step(step, loss)
        if time.monotonic() >= due:
            note(progress.line)
            printed, due = progress.done, time.monotonic() + SECONDS_BETWEEN_LINES

    try:
        yield after_step
    finally:
        if progress.done > printed:
            note(progress.line)


class DeliveryView:
    """Follow the final trainings that other processes do in a folder; what was there before is not news."""

    def __init__(self, folder: Path, total: int) -> None:
        self._folder, self._total = folder, total
        self._seen = read_steps(folder)
        self._trainings: dict[str, StepProgress] = {}

    def look(self) -> list[StepProgress]:
        """Read how far the trainings are; give those that made a step since the last look."""
        moved = []
        for name, (step, loss) in read_steps(self._folder).items():
            if self._seen.get(name) != (step, loss):
                new = StepProgress(name, self._total, memory=0.0, first=step + 1)
                training = self._trainings.setdefault(name, new)
                training.step(step, loss)
                moved.append(training)
                self._seen[name] = step, loss
        return moved

    def bars(self) -> "Group":
        from rich.console import Group

        self.look()
        return Group(*(training.bar() for training in self._trainings.values()))


@contextmanager
def showing_delivery(folder: Path, total: int) -> Iterator[None]:
    """Show on standard error how far the trainings in a folder are."""
    view, over = DeliveryView(folder, total), threading.Event()
    if sys.stderr.isatty():
        with _live(view.bars):
            yield
        return

    def print_lines() -> None:
        while not over.wait(SECONDS_BETWEEN_LINES):
            for training in view.look():
                note(training.line)

    thread = threading.Thread(target=print_lines, daemon=True, name="delivery")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
