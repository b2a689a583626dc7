"""How long work shows how far it is: a live line on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from formwright.cli.output import cell, note
from formwright.core.text import clock

if TYPE_CHECKING:
    from rich.columns import Columns

_SECONDS_BETWEEN_LINES = 10.0
_MEMORY = 0.95  # of the running mean of the losses


@dataclass
class Meter:
    """Follow the steps of a training run, starting at step `done` of `total`."""

    what: str
    total: int
    done: int = 0
    loss: float | None = None
    _began: float = field(default_factory=time.monotonic)
    _first: int | None = None

    def step(self, step: int, loss: float | None) -> None:
        """Take note of a step and its loss, where it has one."""
        if self._first is None:
            self._first = step
        self.done = step + 1
        if loss is not None:
            self.loss = loss if self.loss is None else _MEMORY * self.loss + (1 - _MEMORY) * loss

    @property
    def seconds_left(self) -> float | None:
        """Estimate the seconds that the other steps take; None before the first step."""
        made = 0 if self._first is None else self.done - self._first
        return (time.monotonic() - self._began) / made * (self.total - self.done) if made else None

    @property
    def line(self) -> str:
        """Say it all in one line."""
        loss = "" if self.loss is None else f", loss {self.loss:.4f}"
        left = "" if self.seconds_left is None else f", {clock(self.seconds_left)} left"
        return f"{self.what}: step {self.done:,} of {self.total:,}{loss}{left}"


class _Live:
    """Show a meter on a terminal."""

    def __init__(self, meter: Meter) -> None:
        from rich.console import Console
        from rich.live import Live

        self._meter = meter
        self._live = Live(console=Console(stderr=True), get_renderable=self._bar, refresh_per_second=4, transient=True)

    def _bar(self) -> "Columns":
        from rich.columns import Columns
        from rich.progress_bar import ProgressBar

        return Columns([ProgressBar(self._meter.total, self._meter.done, width=30), cell(self._meter.line)])

    def __enter__(self) -> "_Live":
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __call__(self, step: int, loss: float | None) -> None:
        self._meter.step(step, loss)


class _Lines:
    """Print a meter every few seconds."""

    def __init__(self, meter: Meter) -> None:
        self._meter, self._told = meter, 0
        self._next = time.monotonic() + _SECONDS_BETWEEN_LINES

    def __enter__(self) -> "_Lines":
        return self

    def __exit__(self, *_: object) -> None:
        if self._meter.done > self._told:
            note(self._meter.line)

    def __call__(self, step: int, loss: float | None) -> None:
        self._meter.step(step, loss)
        if time.monotonic() >= self._next:
            note(self._meter.line)
            self._told = self._meter.done
            self._next = time.monotonic() + _SECONDS_BETWEEN_LINES


@contextmanager
def showing(what: str, total: int) -> Iterator[_Live | _Lines]:
    """Show the progress of `total` steps on standard error; give the function that is called after each step."""
    meter = Meter(what, total)
    with _Live(meter) if sys.stderr.isatty() else _Lines(meter) as shown:
        yield shown
