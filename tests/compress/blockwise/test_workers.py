"""Trainings in processes: all are done, shown together, stopped between two steps, and faults are told."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from formwright.compress.blockwise.workers import Crew, Tell
from formwright.core.errors import IllegalInput
from formwright.study.launch import WorkersDied
from formwright.train.fit import Run
from formwright.train.loop import Paused


@dataclass(frozen=True)
class Counting:
    """Count to a number, a file for each step; fail or die where that is wished."""

    folder: Path
    name: str
    steps: int = 5
    fails: bool = False
    dies: int = 0  # processes that begin it

    @property
    def saved(self) -> Path:
        return self.folder / self.name

    def run(self, run: Run) -> None:
        if self.fails:
            raise IllegalInput("this cannot be counted")
        self.saved.mkdir(exist_ok=True)
        begun = self.folder / f"begun-{self.name}"
        begun.write_text(begun.read_text() + "." if begun.exists() else ".")
        if len(begun.read_text()) <= self.dies:
            os._exit(9)
        for step in range(len(list(self.saved.iterdir())), self.steps):
            (self.saved / str(step)).touch()
            assert run.after_step is not None
            run.after_step(step, float(step))


def crew(workers: int, told: list[tuple[int, float]], stop_at: int | None = None) -> Crew:
    @contextmanager
    def showing(_: str, __: int) -> Iterator[Tell]:
        yield lambda step, loss: told.append((step, loss))

    return Crew(workers, 1, lambda: stop_at is not None and any(step >= stop_at for step, _ in told), showing)


def counted(folder: Path) -> int:
    return sum(1 for path in folder.glob("*/*"))


def test_one_worker_does_them_in_order(tmp_path: Path) -> None:
    told: list[tuple[int, float]] = []
    crew(1, told).do("counting", [Counting(tmp_path, "a"), Counting(tmp_path, "b")])
    assert [step for step, _ in told] == list(range(10))
    assert counted(tmp_path) == 10
    crew(1, told).do("nothing", [])


def test_a_wish_stops_between_two_steps_and_the_rest_is_done_later(tmp_path: Path) -> None:
    works = [Counting(tmp_path, "a"), Counting(tmp_path, "b")]
    with pytest.raises(Paused, match="step 3 of 5"):
        crew(1, [], stop_at=2).do("counting", works)
    assert counted(tmp_path) == 3
    crew(1, []).do("counting", works)
    assert counted(tmp_path) == 10


@pytest.mark.slow
@pytest.mark.long
def test_processes_do_all_and_faults_are_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    told: list[tuple[int, float]] = []
    crew(2, told).do("counting", [Counting(tmp_path, name) for name in "abc"])
    assert counted(tmp_path) == 15
    assert told[-1][0] <= 14
    with pytest.raises(WorkersDied, match="message stands above"):
        crew(2, told).do("counting", [Counting(tmp_path, "d", fails=True)])
    assert "this cannot be counted" in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.long
def test_the_work_of_a_process_that_dies_is_gone_on_with(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    works = [Counting(tmp_path, "a", dies=1), Counting(tmp_path, "b")]
    crew(2, []).do("counting", works)
    assert counted(tmp_path) == 10
    assert capfd.readouterr().err.count("a training process died (exit code 9); another one goes on") == 1
    monkeypatch.setattr("formwright.compress.blockwise.workers._BORNE", 1)
    with pytest.raises(WorkersDied, match="died 2 times, the last with exit code 9"):
        crew(2, []).do("counting", [Counting(tmp_path, "c", dies=5)])
