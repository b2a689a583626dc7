"""Running a pipeline: each stage is made once, in order, and again where it is damaged or asked for anew."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.own_process import in_own_process
from tests.pipeline.cases import SOURCE, Sum, own_rows, registered, search_of

from formwright import api
from formwright.core.errors import IllegalInput
from formwright.core.options import Stage, option
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import Interrupted, PipelineRun, Quiet, RunOptions, StageRun
from formwright.pipeline.run_folder import DONE, RUN, RunRecord
from formwright.pipeline.runner import prepare, run_pipeline
from formwright.study.stop import Stop


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    with registered():
        yield


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the list of stages that are made from now on."""
    names: list[str] = []
    make = Sum.make

    def noted(stage: Sum, run: StageRun) -> None:
        names.append(run.name)
        make(stage, run)

    monkeypatch.setattr(Sum, "make", noted)
    return names


def three(**options: Any) -> Pipeline:
    """Give a sum, one that goes on with it, and one of its own."""
    first = Sum(**options)
    return Pipeline(first, Sum(10, before=first), Sum(100))


class Shown(Quiet):
    """Keep what is told; call a function after each step."""

    def __init__(self, after: Any = None) -> None:
        self.lines: list[str] = []
        self._after = after or (lambda _: None)

    def tell(self, line: str) -> None:
        self.lines.append(line)

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Any]:
        yield lambda step, _: self._after(step)


def run(folder: Path, pipeline: Pipeline | None = None, **options: Any) -> PipelineRun:
    return run_pipeline(PipelineRun(pipeline or three(), folder, **options))


def sums(done: PipelineRun) -> list[int]:
    return [done.artifact(stage) for stage in done.pipeline]


def test_stages_are_made_in_order_and_only_once(made: list[str], tmp_path: Path) -> None:
    assert sums(run(tmp_path / "run")) == [3, 33, 300]
    assert made == ["sum", "sum-2", "sum-3"]
    assert sums(run(tmp_path / "run")) == [3, 33, 300]
    assert sums(run((tmp_path / "run").rename(tmp_path / "moved"))) == [3, 33, 300]
    assert len(made) == 3
    facts = json.loads((tmp_path / "moved" / "sum" / DONE).read_text())
    assert facts["files"].keys() == {"steps.txt", "sum.json"}
    assert not (tmp_path / "moved" / "checkpoints").exists() or not list((tmp_path / "moved" / "checkpoints").iterdir())


def test_what_is_damaged_or_half_written_is_made_again_and_said(made: list[str], tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / "sum-2" / "sum.json").write_text("7")
    (tmp_path / "sum-2" / "stale.json").touch()
    made.clear()
    display = Shown()
    assert sums(run(tmp_path, display=display)) == [3, 33, 300]
    assert made == ["sum-2"]
    assert not (tmp_path / "sum-2" / "stale.json").exists()
    assert any("sum-2" in line and "damaged" in line for line in display.lines)
    (tmp_path / "sum" / "sum.json").write_text("7")
    (tmp_path / "sum-2" / DONE).unlink()
    begun = PipelineRun(three(), tmp_path)
    assert sums(begun) == [7, 33, 300]
    assert sums(run_pipeline(begun)) == [3, 33, 300]  # and not 37, from what was damaged
    (tmp_path / "sum" / DONE).unlink()
    (tmp_path / "sum" / ".weights.7").mkdir()
    for name in (".sum.json.7", ".weights.7/part", "kept.txt"):
        (tmp_path / "sum" / name).write_text("half")
    run(tmp_path)
    assert {path.name for path in (tmp_path / "sum").iterdir()} == {DONE, "kept.txt", "steps.txt", "sum.json"}


@dataclass(frozen=True)
class Grows(Stage):
    """Write so many files, and stop before one of them."""

    NAME: ClassVar[str] = "grows"
    many: int = option(2, "how many", extent=True)
    stop: int = option(-1, "the number of a file that is not written", extent=True)
    written: ClassVar[list[int]] = []

    def make(self, run: StageRun) -> None:
        run.folder.mkdir(parents=True, exist_ok=True)
        for number in range(len(list(run.folder.glob("*.txt"))), self.many):
            if number == self.stop:
                raise Interrupted(f"file {number}")
            (run.folder / f"{number}.txt").write_text(str(number))
            self.written.append(number)

    def reaches(self, run: StageRun) -> bool:
        return len(list(run.folder.glob("*.txt"))) >= self.many


def test_a_stage_that_is_stopped_while_it_is_added_to_goes_on_from_there(tmp_path: Path) -> None:
    Grows.written.clear()
    run(tmp_path, Pipeline(Grows(2)))
    with pytest.raises(Interrupted):
        run(tmp_path, Pipeline(Grows(5, stop=4)))
    run(tmp_path, Pipeline(Grows(5)))
    run(tmp_path, Pipeline(Grows(3)))  # fewer are there
    assert Grows.written == [0, 1, 2, 3, 4]


def test_other_options_are_refused_and_nothing_is_touched(made: list[str], tmp_path: Path) -> None:
    run(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(IllegalInput) as caught:
        run(tmp_path, three(seed=4, steps=2))
    for fact in ("sum.seed", "sum.steps", "4", "force", "output folder"):
        assert fact in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert sums(run(tmp_path, three(shown=9))) == [3, 33, 300]  # how far it goes is no other run
    assert len(made) == 3
    assert sums(run(tmp_path, three(seed=4), force=True)) == [12, 42, 300]
    assert len(made) == 6


def test_input_that_changed_is_refused(made: list[str], tmp_path: Path) -> None:
    file = tmp_path / "numbers.txt"
    file.write_text("5")
    assert sums(run(tmp_path / "run", three(file=str(file)))) == [8, 38, 300]
    file.write_text("6")
    with pytest.raises(IllegalInput, match="numbers"):
        run(tmp_path / "run", three(file=str(file)))
    file.write_text("5")
    run(tmp_path / "run", three(file=str(file)))
    assert len(made) == 3


def test_what_cannot_be_done_or_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="steps"):
        run(tmp_path / "run", three(steps=0))
    assert not (tmp_path / "run").exists()
    run(tmp_path)
    (tmp_path / RUN).write_text("{")
    with pytest.raises(IllegalInput, match="force"):
        run(tmp_path)
    assert sums(run(tmp_path, force=True)) == [3, 33, 300]


def test_names_of_a_file_are_the_names_of_folders(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("stages:\n  one: {stage: sum}\n  two: {stage: sum, before: one}\n")
    done = api.run(tmp_path / "mine.yaml", tmp_path / "run", settings={"two.seed": 7}).run
    assert list(done.pipeline.named) == ["one", "two"]
    assert sums(done) == [3, 24]
    assert (tmp_path / "run" / "two" / DONE).is_file()
    again = api.resume(tmp_path / "run").run
    assert sums(again) == [3, 24]


def ask_in_the_second_stage(folder: str) -> None:
    seen: list[int] = []

    def interrupt(step: int) -> None:
        seen.append(step)
        if seen == [1, 2, 3, 1, 2]:
            os.kill(os.getpid(), signal.SIGINT)

    with registered(), pytest.raises(Interrupted, match="step 2"):
        run(Path(folder), display=Shown(interrupt))


def test_a_wish_to_stop_is_heard_and_the_rest_is_made_later(made: list[str], tmp_path: Path) -> None:
    in_own_process(ask_in_the_second_stage, tmp_path)
    assert (tmp_path / "sum").exists()
    assert not (tmp_path / "sum-2").exists()
    steps: list[int] = []
    assert sums(run(tmp_path, display=Shown(steps.append))) == [3, 33, 300]
    assert made == ["sum-2", "sum-3"]
    assert steps == [3, 1, 2, 3]  # the second went on where it was


class Killed(BaseException):
    """What nobody catches."""


@pytest.mark.parametrize("turn", range(9))
def test_a_run_that_was_killed_at_any_step_comes_to_the_same(turn: int, tmp_path: Path) -> None:
    seen: list[int] = []

    def kill(step: int) -> None:
        seen.append(step)
        if len(seen) == turn + 1:
            raise Killed

    with pytest.raises(Killed):
        run(tmp_path, display=Shown(kill))
    assert sums(run(tmp_path, display=Shown(seen.append))) == [3, 33, 300]
    assert len(seen) == 9  # no step was done twice


WORK = """
import sys, time
from tests.pipeline.test_runner import Shown, run, registered
from pathlib import Path
def slowly(step):
    print(step, flush=True)
    time.sleep(60)
with registered():
    run(Path(sys.argv[1]), display=Shown(slowly))
"""


@pytest.mark.slow
def test_two_processes_do_not_work_in_one_folder_and_one_that_was_killed_leaves_it(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SOURCE), str(SOURCE.parent)])}
    command = [sys.executable, "-c", WORK, str(tmp_path / "run")]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "1\n"
            with pytest.raises(IllegalInput, match="another process"):
                run(tmp_path / "run")
        finally:
            process.kill()
    steps: list[int] = []
    assert sums(run(tmp_path / "run", display=Shown(steps.append))) == [3, 33, 300]
    assert steps == [2, 3, 1, 2, 3, 1, 2, 3]


def test_options_are_settled_once_and_recorded(tmp_path: Path) -> None:
    at_work = PipelineRun(three(), tmp_path / "run", RunOptions(workers=7), command="formwright run mine.yaml")
    record = prepare(at_work)
    assert not (tmp_path / "run").exists()
    run_pipeline(at_work)
    found = RunRecord.read(tmp_path / "run")
    assert found == record
    assert (found.options.workers, found.command, found.name) == (7, "formwright run mine.yaml", "run")
    assert Pipeline.from_json(found.pipeline) == three()


def test_observers_and_the_page_follow_a_run(tmp_path: Path) -> None:
    class Observer:
        def __init__(self) -> None:
            self.seen: list[str] = []

        def stage(self, name: str) -> None:
            self.seen.append(name)

    observer, pages = Observer(), list[Path]()
    run(tmp_path, observers=(observer,), page=lambda done: pages.append(done.out))
    assert (observer.seen, pages) == (["sum", "sum-2", "sum-3"], [tmp_path])


@pytest.mark.parametrize(
    ("hours", "given", "seconds"), [(1.0, None, 3240.0), (1.0, 60.0, 60.0), (0.01, 60.0, 32.4), (1e-9, None, 1.0)]
)
def test_hours_end_a_search_whose_trials_cannot_be_planned(
    hours: float, given: float | None, seconds: float, tmp_path: Path
) -> None:
    run = PipelineRun(own_rows(tmp_path, stop=Stop(4, given)), tmp_path / "run", RunOptions(hours=hours))
    prepare(run)
    assert search_of(run.pipeline).stop.seconds == pytest.approx(seconds)
