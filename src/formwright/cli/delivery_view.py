"""The final trainings while they run in other processes: live bars on a terminal, lines now and then elsewhere."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from formwright.cli.output import cell, note
from formwright.core.text import clock
from formwright.pipeline.units import read_steps

if TYPE_CHECKING:
    from rich.console import Group
    from rich.progress_bar import ProgressBar

SECONDS_BETWEEN_LINES = 10.0


@dataclass
class Training:
    """A training that was first seen after `first` of its steps."""

    name: str
    total: int
    first: int
    done: int
    loss: float
    began: float = field(default_factory=time.monotonic)

    @property
    def line(self) -> str:
        """Say it all in one line."""
        made = self.done - self.first
        seconds = (time.monotonic() - self.began) / made * (self.total - self.done) if made else None
        left = "" if seconds is None else f", {clock(seconds)} left"
        return f"{self.name}: step {self.done:,} of {self.total:,}, loss {self.loss:.4f}{left}"


class DeliveryView:
    """Follow the trainings in a folder, each of so many steps; what was there before is not news."""

    def __init__(self, folder: Path, total: int) -> None:
        self._folder, self._total = folder, total
        self._seen = read_steps(folder)
        self._trainings: dict[str, Training] = {}

    def look(self) -> list[Training]:
        """Read how far the trainings are; give those that made a step since the last look."""
        moved = []
        for name, (step, loss) in read_steps(self._folder).items():
            if self._seen.get(name) != (step, loss):
                new = Training(name, self._total, step + 1, step + 1, loss)
                training = self._trainings.setdefault(name, new)
                training.done, training.loss = step + 1, loss
                moved.append(training)
                self._seen[name] = step, loss
        return moved

    def bars(self) -> "Group":
        """Draw all trainings."""
        from rich.columns import Columns
        from rich.console import Group

        self.look()
        return Group(*(Columns([_bar(each), cell(each.line)]) for each in self._trainings.values()))


def _bar(training: Training) -> "ProgressBar":
    from rich.progress_bar import ProgressBar

    return ProgressBar(training.total, training.done, width=30)


@contextmanager
def showing_delivery(folder: Path, total: int) -> Iterator[None]:
    """Show on standard error how far the trainings in a folder are."""
    view = DeliveryView(folder, total)
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(stderr=True), get_renderable=view.bars, refresh_per_second=2, transient=True):
            yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_print_lines, args=(view, over), daemon=True, name="delivery")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _print_lines(view: DeliveryView, over: threading.Event) -> None:
    while not over.wait(SECONDS_BETWEEN_LINES):
        for training in view.look():
            note(training.line)
