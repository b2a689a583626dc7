"""Real processes: they work, die, are replaced, are stopped, and do not outlive whoever started them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.own_process import in_own_process
from tests.pipeline.cases import create, own_rows, work
from tests.study.cases import kinds

import formwright
from formwright.core.errors import FormwrightError
from formwright.pipeline.run_events import work_at, work_here
from formwright.pipeline.study_place import Opened, Place, find
from formwright.study.identity import dead
from formwright.study.processes import FAULTY, WorkersDied, one_thread_each, run_workers, without_interruption
from formwright.study.stop import Stop
from formwright.study.store import Store
from formwright.train.interrupt import gentle_interruption

pytestmark = pytest.mark.timeout(120)  # processes that start on a busy machine
LAUNCH = """
import sys
from pathlib import Path
from functools import partial
from formwright.study.processes import run_workers
from formwright.pipeline.study_place import find
from formwright.pipeline.run_events import work_at
if __name__ == "__main__":
    run_workers(partial(work_at, find(sys.argv[1])), 2, lambda: None)
"""
FAULTY_SPACE = """
from dataclasses import replace
from formwright.testing.toy_problem import tiny

def build(design):
    return 1 / 0 if design == LAST else tiny().build(design)

LAST = list(tiny().enumerate())[-1]
MINE = replace(tiny(), build=build)
"""
ENDLESS = 5000


def nothing() -> None:
    return None


def place_of(folder: Path, trials: int, **changes: Any) -> Place:
    return create(folder / "mine", own_rows(folder, stop=Stop(trials), **changes))


def once(opened: Opened, act: Callable[[str], None]) -> Callable[[], None]:
    """Give a function that acts once, on the worker of the first trial that is under way."""
    done: list[str] = []

    def look() -> None:
        workers = [lease.worker for lease in opened.log.leases().values()]
        if workers and not done:
            done.append(workers[0])
            act(workers[0])

    return look


def process_of(worker: str) -> int:
    return int(worker.split("/")[-2])


def test_processes_that_are_started_have_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with one_thread_each():
        assert (os.environ["OMP_NUM_THREADS"], os.environ["MKL_NUM_THREADS"]) == ("1", "1")
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def start_between_signals() -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('alive')"
    with gentle_interruption() as interruption:
        with without_interruption():
            os.kill(os.getpid(), signal.SIGINT)
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "alive\n"
        assert interruption.asked  # here it is not lost
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_processes_that_are_started_do_not_hear_an_interruption() -> None:
    in_own_process(start_between_signals)


def test_a_worker_in_this_process(tmp_path: Path) -> None:
    place = place_of(tmp_path, 3)
    work(place)
    with place.open() as opened:
        assert [event.number for event in kinds(opened.log, "told")] == [0, 1, 2]
        assert kinds(opened.log, "stopped")[-1].data == {"reason": "3 trials"}


def test_a_study_that_nobody_can_work_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert work_here(place_of(tmp_path, 3, space="absent")) == FAULTY
    assert capsys.readouterr().err.startswith("formwright: no space called 'absent'")


def test_a_design_that_cannot_be_built_is_told_and_meets_every_worker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text(FAULTY_SPACE, encoding="utf-8")
    place = place_of(tmp_path, 20, space=f"{tmp_path / 'own.py'}:MINE", searcher="boshnas")
    assert work_here(place) == FAULTY
    told = capsys.readouterr().err
    assert told.startswith("formwright: the `build` of space 'tiny' failed for the design ")
    assert told.endswith(": ZeroDivisionError: division by zero\n")


@pytest.mark.slow
def test_workers_share_a_study_and_replace_one_that_died(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = place_of(tmp_path, 30)
    with place.open() as opened:
        victims: list[str] = []

        def kill(worker: str) -> None:
            victims.append(worker)
            os.kill(process_of(worker), signal.SIGKILL)

        assert run_workers(partial(work_at, place), 2, once(opened, kill))
        told = kinds(opened.log, "told")
        assert sorted(event.number for event in told if event.number is not None) == list(range(30))
        assert len({event.worker for event in kinds(opened.log, "told", "stopped")} - set(victims)) == 2
        assert opened.log.leases() == {}
    assert len(victims) == 1
    assert capsys.readouterr().err == "a worker died (exit code -9); another one takes its place\n"


def ask_with_the_last_trial(folder: str) -> None:
    place, looks = find(folder), iter([partial(os.kill, os.getpid(), signal.SIGINT)])

    def ask_once() -> None:
        next(looks, nothing)()

    assert run_workers(partial(work_at, place), 1, nothing)
    assert not run_workers(partial(work_at, place), 1, ask_once)
    assert run_workers(partial(work_at, place), 1, nothing)


@pytest.mark.long
def test_a_wish_to_stop_that_comes_with_the_last_trial_is_heard_too(tmp_path: Path) -> None:
    in_own_process(ask_with_the_last_trial, place_of(tmp_path, 1).folder)


def ask_in_the_middle(folder: str, number: str) -> None:
    place = find(folder)
    with place.open() as opened:
        ask = once(opened, lambda _: os.kill(os.getpid(), int(number)))
        assert not run_workers(partial(work_at, place), 1, ask)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_workers_stop_when_the_user_asks(number: signal.Signals, tmp_path: Path) -> None:
    place = place_of(tmp_path, ENDLESS)
    in_own_process(ask_in_the_middle, place.folder, number.value)
    with place.open() as opened:
        assert kinds(opened.log, "stopped") == []
        assert 0 <= len(kinds(opened.log, "told")) < ENDLESS
        assert all(lease.expires <= opened.log.now() for lease in opened.log.leases().values())


@pytest.mark.long
def test_an_error_that_meets_every_worker_is_raised(tmp_path: Path) -> None:
    with pytest.raises(FormwrightError, match="no searcher called 'absent'"):
        run_workers(partial(work_at, place_of(tmp_path, 3, searcher="absent")), 1, nothing)


@pytest.mark.long
def test_workers_that_keep_dying_are_not_replaced_for_ever(tmp_path: Path) -> None:
    place = place_of(tmp_path, ENDLESS)
    with place.open() as opened:

        def kill() -> None:
            for worker in {lease.worker for lease in opened.log.leases().values()}:
                if not dead([worker]):
                    os.kill(process_of(worker), signal.SIGKILL)

        with pytest.raises(WorkersDied, match="worker processes died 2 times"):
            run_workers(partial(work_at, place), 1, kill, replacements=1)


@pytest.mark.long
def test_workers_do_not_outlive_their_launcher(tmp_path: Path) -> None:
    place = place_of(tmp_path, ENDLESS)
    script = tmp_path / "launch.py"
    script.write_text(LAUNCH, encoding="utf-8")
    source = str(Path(formwright.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source}
    with (
        Store.open(place.storage) as store,
        subprocess.Popen([sys.executable, str(script), str(place.folder)], env=environment) as launcher,
    ):
        log = store.study(place.name)
        workers: set[str] = set()
        while len(workers) < 2:
            assert launcher.poll() is None
            workers |= {lease.worker for lease in log.leases().values()}
            time.sleep(0.05)
        assert dead(workers) == frozenset()
        launcher.kill()
        launcher.wait()
        deadline = time.monotonic() + 10
        while dead(workers) != workers and time.monotonic() < deadline:
            time.sleep(0.05)
        assert dead(workers) == workers
    assert find(str(place.folder)) == place
