"""Times that hold while the machine is busy, told with a clock that the tests turn by hand."""

import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import pytest

from formwright.nn import timing
from formwright.nn.timing import WINDOW, TimingClock, timed_in_turns

Opening = Callable[[], AbstractContextManager[Callable[[], object]]]


class Machine:
    """A machine on which a run takes its own time, and as much again as others take the processor away."""

    def __init__(self, slowed: Callable[[float], float] = lambda _: 1.0) -> None:
        self.now = self.worked = self.paused = 0.0
        self.slowed = slowed  # by the time that has passed

    def run(self, seconds: float) -> Opening:
        def once() -> None:
            self.now += seconds * self.slowed(self.now)
            self.worked += seconds

        return partial(nullcontext, once)

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self.paused += seconds

    def clock(self, *, processor: bool = True) -> TimingClock:
        return TimingClock(lambda: self.now, (lambda: self.worked) if processor else None, self.pause)


@pytest.mark.parametrize("slower", [1.5, 6.0])
def test_a_run_that_waits_for_the_processor_all_the_while_takes_what_it_works(slower: float) -> None:
    machine = Machine(lambda _: slower)
    (found,) = timed_in_turns([machine.run(0.004)], 20, 3, machine.clock())
    assert (found.median_ms, found.high_ms) == (pytest.approx(4.0), pytest.approx(4.0 * slower))
    assert found.waited == pytest.approx(1 - 1 / slower)
    assert found.busy


def test_the_quietest_window_counts_where_the_processor_time_is_unknown() -> None:
    machine = Machine(lambda now: 1.0 if 0.3 < now < 0.4 else 5.0)
    (found,) = timed_in_turns([machine.run(0.004)], 50, 3, machine.clock(processor=False))
    assert found.median_ms == pytest.approx(4.0)
    assert found.waited is None
    assert found.spread == pytest.approx(4.0)
    assert found.busy


def test_an_idle_machine_measured_in_turns() -> None:
    machine = Machine()
    (found,) = timed_in_turns([machine.run(0.004)], 20, 3, machine.clock())
    assert (found.median_ms, found.low_ms, found.high_ms) == pytest.approx((4.0, 4.0, 4.0))
    assert (found.spread, found.waited) == pytest.approx((0.0, 0.0))
    assert (found.runs, found.busy) == (20, False)
    """The machine is busy at first: whatever is measured then alone would look slow."""
    machine = Machine(lambda now: 7.0 if now < 2.0 else 1.0)
    teacher, small = machine.run(0.02), machine.run(0.01)
    found = timed_in_turns([teacher, small], 50, 3, machine.clock(processor=False))
    assert found[0].median_ms / found[1].median_ms == pytest.approx(2.0)


@pytest.mark.parametrize(("number", "windows", "each"), [(2, 1, 2), (6, 2, 3), (20, 4, 5), (21, 5, 5), (50, 10, 5)])
def test_windows_are_short_and_spread_over_time(number: int, windows: int, each: int) -> None:
    machine, runs = Machine(), []
    (found,) = timed_in_turns([partial(nullcontext, lambda: runs.append(machine.now))], number, 0, machine.clock())
    assert len(runs) == windows * (each + 1)
    assert len(set(runs)) == windows  # nothing passes but the pauses
    assert found.runs == windows * each
    assert each <= WINDOW


def test_the_garbage_collector_waits() -> None:
    seen: list[bool] = []
    timed_in_turns([partial(nullcontext, lambda: seen.append(gc.isenabled()))], 5, 2, Machine().clock())
    assert seen == [True] * 2 + [False] * 6
    assert gc.isenabled()


@pytest.mark.parametrize(("load", "busy"), [(0.3, False), (99.0, True), (None, False)])
def test_with_several_threads_the_load_tells_whether_others_compute(load, busy, monkeypatch) -> None:
    def told() -> tuple[float, ...]:
        if load is None:
            raise OSError
        return (load, 0.0, 0.0)

    monkeypatch.setattr(timing.os, "getloadavg", told, raising=False)
    machine = Machine()
    (found,) = timed_in_turns([machine.run(0.004)], 10, 1, machine.clock(processor=False))
    assert found.busy is busy


def test_a_coarse_processor_clock_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert TimingClock.of(1).worked is not None
    assert TimingClock.of(2).worked is None

    class Coarse:
        resolution = 0.0156

    monkeypatch.setattr(timing.time, "get_clock_info", lambda _: Coarse)
    assert TimingClock.of(1).worked is None


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    yield
    gc.enable()
