"""How far long work is."""

import io
import sys
import time
from pathlib import Path

import pytest

from formwright.cli import progress
from formwright.cli.progress import DeliveryView, StepProgress, showing, showing_delivery
from formwright.pipeline import units
from formwright.pipeline.units import step_writer

Seen = pytest.CaptureFixture[str]


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("formwright.cli.progress.time", clock)
    return clock


class Terminal(io.StringIO):
    """A terminal that keeps what it was shown."""

    def isatty(self) -> bool:
        return True


def test_before_the_first_step_nothing_is_known() -> None:
    fresh = StepProgress("training", 1_000)
    assert (fresh.seconds_left, fresh.line) == (None, "training: step 0 of 1,000")


@pytest.mark.parametrize(
    ("steps", "each", "line"),
    [
        (range(20), 0.5, "training: step 20 of 100, loss 2.0000, 0:40 left"),
        (range(80, 90), 3.0, "training: step 90 of 100, loss 2.0000, 0:30 left"),  # only its own steps count
        (range(10), 0.01, "training: step 10 of 100, loss 2.0000, 0:01 left"),
        (range(10), 1.0, "training: step 10 of 100, loss 2.0000, 1:30 left"),
        (range(10), 100.0, "training: step 10 of 100, loss 2.0000, 2:30:00 left"),
    ],
)
def test_the_time_left_follows_from_the_steps_made(steps: range, each: float, line: str, clock: Clock) -> None:
    shown = StepProgress("training", 100, began=clock.now)
    for step in steps:
        clock.now += each
        shown.step(step, 2.0)
    assert shown.seconds_left == pytest.approx((99 - steps[-1]) * each)
    assert shown.line == line


def test_the_loss_is_a_running_mean() -> None:
    shown = StepProgress("training", 9)
    shown.step(0, 4.0)
    assert shown.loss == 4.0
    shown.step(1, 2.0)
    assert shown.loss == pytest.approx(3.9)


def test_lines_come_every_ten_seconds_and_at_the_end(clock: Clock, capsys: Seen) -> None:
    with showing("training", 100) as tell:
        for step in range(60):
            clock.now += 0.5
            tell(step, 1.0)
    seen = capsys.readouterr()
    assert seen.out == ""
    lines = seen.err.splitlines()
    assert [line.split(",")[0] for line in lines] == [f"training: step {step} of 100" for step in (20, 40, 60)]


def test_a_run_that_is_stopped_tells_how_far_it_came(capsys: Seen) -> None:
    def stopped() -> None:
        with showing("training", 100) as tell:
            tell(6, 1.0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert capsys.readouterr().err.startswith("training: step 7 of 100, loss 1.0000")


def test_where_no_step_was_made_nothing_is_said(capsys: Seen) -> None:
    with showing("training", 100):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_a_bar_and_is_cleared(monkeypatch: pytest.MonkeyPatch, capsys: Seen) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with showing("training", 50) as tell:
        tell(24, 1.5)
    shown = terminal.getvalue()
    assert "training: step 25 of 50, loss 1.5000" in shown
    assert shown.endswith("\x1b[2K")  # the line is erased
    assert capsys.readouterr().out == ""


def test_a_step_without_a_loss_tells_none() -> None:
    meter = StepProgress("measuring", 4)
    meter.step(0, None)
    assert meter.line.startswith("measuring: step 1 of 4")
    assert "loss" not in meter.line
    meter.step(1, 2.0)
    meter.step(2, None)
    assert "loss 2.0000" in meter.line


def test_a_step_is_printed_once(capsys: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the last one took so long that it was told at once."""
    ticks = iter(range(0, 1000, 100))
    monkeypatch.setattr("formwright.cli.progress.time.monotonic", lambda: float(next(ticks)))
    with showing("judging", 1) as tell:
        tell(0, None)
    assert capsys.readouterr().err.count("judging: step 1 of 1") == 1


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "SECONDS", 0.0)


def folder_of(tmp_path: Path, name: str) -> Path:
    (tmp_path / name).mkdir()
    return tmp_path / name


def test_only_what_moves_is_shown(tmp_path: Path) -> None:
    old, new = step_writer(folder_of(tmp_path, "old")), step_writer(folder_of(tmp_path, "trial-3"))
    old(400, 0.5)
    view = DeliveryView(tmp_path, 1000)
    assert view.look() == []
    new(9, 0.25)
    assert [training.line for training in view.look()] == ["trial-3: step 10 of 1,000, loss 0.2500"]
    assert view.look() == []
    new(19, 0.25)
    (training,) = view.look()
    assert training.line.startswith("trial-3: step 20 of 1,000, loss 0.2500, ")
    assert training.line.endswith(" left")


def test_bars_are_drawn_for_every_training(tmp_path: Path) -> None:
    view = DeliveryView(tmp_path, 10)
    for name in ("baseline", "trial-1"):
        step_writer(folder_of(tmp_path, name))(0, 1.0)
    assert len(view.bars().renderables) == 2


def test_lines_are_printed_while_the_work_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Seen
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.01)
    after_step = step_writer(folder_of(tmp_path, "trial-1"))
    seen = ""
    with showing_delivery(tmp_path, 10):
        after_step(4, 1.0)
        until = time.monotonic() + 20
        while not seen and time.monotonic() < until:
            time.sleep(0.01)
            seen = capsys.readouterr().err
    assert seen == "trial-1: step 5 of 10, loss 1.0000\n"
