"""Units of work: all are done, shown together, saved, and stopped between two steps; faults are told."""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.pipeline.compressions import Told

from formwright.core.errors import IllegalInput
from formwright.core.options import Stage
from formwright.pipeline import units
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import Interrupted, PipelineRun, RunOptions
from formwright.pipeline.units import Unit, read_steps, step_writer, train_units
from formwright.study.processes import WorkersDied
from formwright.train.fit import Run


@dataclass(frozen=True)
class Counting(Stage):
    """Do units that a test gives."""

    NAME = "counting"


@dataclass(frozen=True)
class Counter:
    """Count to a number, a file for each step; fail or die where that is wished."""

    folder: Path
    steps: int = 5
    fails: bool = False
    dies: int = 0  # processes that begin it

    def __call__(self, run: Run) -> None:
        if self.fails:
            raise IllegalInput("this cannot be counted")
        self.folder.mkdir(exist_ok=True)
        begun = self.folder.with_suffix(".begun")
        begun.write_text(begun.read_text() + "." if begun.exists() else ".")
        if len(begun.read_text()) <= self.dies:
            os._exit(9)
        assert run.saving is not None
        run.saving.folder.mkdir(parents=True, exist_ok=True)
        for step in range(len(list(self.folder.iterdir())), self.steps):
            (self.folder / str(step)).touch()
            assert run.after_step is not None
            run.after_step(step, float(step))


def train(folder: Path, units: Sequence[Counter], workers: int = 1, stop_at: int | None = None) -> list[int]:
    """Do units; give the steps that were shown."""
    stage, display = Counting(), Told()
    run = PipelineRun(Pipeline(stage), folder / "out", RunOptions(workers), display)

    class Stopping:
        def step(self, _: str, step: int, __: float) -> None:
            run.interruption.asked |= step == stop_at

    run.observers = (Stopping(),)

    def given(unit: Counter) -> Callable[[], Counter]:
        return lambda: unit

    named = [Unit(unit.folder.name, unit.steps, given(unit)) for unit in units]
    train_units(run.stage(stage), "counting", named)
    assert not list(run.stage(stage).checkpoints.glob("*"))
    return display.steps_of("counting")


def counted(folder: Path) -> int:
    return sum(1 for path in folder.glob("?/*"))


def test_one_worker_does_them_in_order(tmp_path: Path) -> None:
    assert train(tmp_path, [Counter(tmp_path / "a"), Counter(tmp_path / "b")]) == list(range(10))
    assert counted(tmp_path) == 10
    assert train(tmp_path, []) == []


def test_a_wish_stops_between_two_steps_and_the_rest_is_done_later(tmp_path: Path) -> None:
    units = [Counter(tmp_path / "a"), Counter(tmp_path / "b")]
    with pytest.raises(Interrupted, match="step 3 of 10 of counting"):
        train(tmp_path, units, stop_at=2)
    assert counted(tmp_path) == 3
    train(tmp_path, units)
    assert counted(tmp_path) == 10


@pytest.mark.slow
def test_processes_do_all_and_faults_are_told(tmp_path: Path) -> None:
    train(tmp_path, [Counter(tmp_path / name) for name in "abc"], workers=2)
    assert counted(tmp_path) == 15
    with pytest.raises(IllegalInput, match="cannot be counted"):
        train(tmp_path, [Counter(tmp_path / "d", fails=True)], workers=2)


@pytest.mark.long
def test_the_work_of_a_process_that_dies_is_resumed_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("formwright.pipeline.units._REPLACEMENTS", 1)
    train(tmp_path, [Counter(tmp_path / "a", dies=1), Counter(tmp_path / "b")], workers=2)
    assert counted(tmp_path) == 10
    with pytest.raises(WorkersDied, match="died 2 times, the last with exit code 9"):
        train(tmp_path, [Counter(tmp_path / "c", dies=5)], workers=2)


def test_the_last_step_of_each_training_is_read_and_not_every_one_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_steps(tmp_path / "absent") == {}
    (tmp_path / "one").mkdir()
    after_step = step_writer(tmp_path / "one")
    for step in range(100):
        after_step(step, 0.5)
    assert read_steps(tmp_path) == {"one": (0, 0.5)}
    monkeypatch.setattr(units, "SECONDS", 0.0)
    (tmp_path / "two").mkdir()
    one, two = step_writer(tmp_path / "one"), step_writer(tmp_path / "two")
    one(0, 0.7)
    two(4, math.nan)
    one(1, 0.1 + 0.2)
    found = read_steps(tmp_path)
    assert found["one"] == (1, 0.1 + 0.2)
    assert found["two"][0] == 4
    assert math.isnan(found["two"][1])
