"""Time functions robustly on a machine that may be busy with other work.

Other work makes a run slower and never faster. So several functions are timed in turns, in short windows spread over
time, and the quietest window of each counts. A run on one thread that was interrupted took more time than the processor
worked for it: then the processor time counts, which is what the run takes on an idle machine.
"""

import gc
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

WINDOW = 5  # runs in a row
_PAUSE = 0.01  # seconds between windows: other processes that wait for the processor get it then, not within a window
_COARSE = 1e-4  # seconds: a processor clock that ticks more slowly says nothing about runs of milliseconds
_WAITED, _SPREAD = 0.1, 0.15  # beyond these the machine counts as busy

Run = Callable[[], Any]


@dataclass(frozen=True)
class TimingClock:
    """Seconds that pass, seconds that the processor works for this process (None: unknown), and how to wait."""

    passed: Callable[[], float] = time.perf_counter
    worked: Callable[[], float] | None = None
    pause: Callable[[float], None] = time.sleep

    @classmethod
    def of(cls, threads: int) -> "TimingClock":
        """Return the clock of this machine; with several threads, processor time and time that passes differ anyway."""
        fine = time.get_clock_info("process_time").resolution < _COARSE
        return cls(worked=time.process_time if threads == 1 and fine else None)


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one run: the median of the quietest window, and the middle 90 % of all runs.

    `spread` is how much longer the median window took than the quietest, as a fraction; `waited` the share of the time
    in which the processor did something else, None where that is unknown.
    """

    median_ms: float
    low_ms: float
    high_ms: float
    spread: float
    waited: float | None
    runs: int

    @property
    def busy(self) -> bool:
        if self.spread > _SPREAD:
            return True
        if self.waited is not None:
            return self.waited > _WAITED
        try:  # whether more processes want to compute than there are processors
            return os.getloadavg()[0] > (os.cpu_count() or 1)
        except (AttributeError, OSError):  # the system does not say
            return False


@dataclass(frozen=True)
class _Window:
    """The seconds of each run: those that passed, and those that were worked."""

    passed: tuple[float, ...]
    worked: tuple[float, ...]

    @property
    def median(self) -> float:
        """Return the median run, without the time that was spent waiting for the processor."""
        return float(np.median(np.minimum(self.passed, self.worked)))


def timed_in_turns(
    runs: Sequence[Callable[[], AbstractContextManager[Run]]],
    number: int,
    warmup: int,
    clock: TimingClock | None = None,
) -> list[Timing]:
    """Time each function about `number` times, in turns; opening its context for a window is not timed."""
    clock = clock or TimingClock.of(1)
    rounds = math.ceil(number / WINDOW)
    each = math.ceil(number / rounds)
    windows: list[list[_Window]] = [[] for _ in runs]
    for turn in range(rounds):
        for opening, found in zip(runs, windows, strict=True):
            with opening() as run:
                for _ in range(warmup if turn == 0 else 0):
                    run()
                found.append(_window(run, each, clock))
    return [_summary(found, clock) for found in windows]


def _window(run: Run, number: int, clock: TimingClock) -> _Window:
    """Time some runs in a row; the garbage collector waits meanwhile."""
    clock.pause(_PAUSE)
    passed, worked = [], []
    with _without_garbage_collector():
        run()  # which brings back to the caches what others have pushed out
        for _ in range(number):
            began, before = clock.passed(), clock.worked() if clock.worked else 0.0
            run()
            work = clock.worked() - before if clock.worked else math.inf
            passed.append(clock.passed() - began)
            worked.append(work)
    return _Window(tuple(passed), tuple(worked))


def _summary(windows: Sequence[_Window], clock: TimingClock) -> Timing:
    medians = [window.median for window in windows]
    passed = np.array([time for window in windows for time in window.passed])
    low, high = (float(value) for value in np.quantile(passed, (0.05, 0.95)))
    quietest = min(medians)
    spread = float(np.median(medians)) / quietest - 1 if quietest else 0.0
    waited = None
    if clock.worked:
        worked = sum(time for window in windows for time in window.worked)
        waited = max(0.0, 1 - worked / float(passed.sum())) if passed.any() else 0.0
    low = min(low, quietest)
    return Timing(quietest * 1e3, low * 1e3, max(high, quietest) * 1e3, spread, waited, len(passed))


@contextmanager
def _without_garbage_collector() -> Iterator[None]:
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
