"""Processes: their names, their locks, and a supervisor that replaces the dead and handles a request to stop."""

import multiprocessing
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

import formwright
from formwright.core.errors import IllegalInput
from formwright.study.folder_lock import alone_in
from formwright.study.identity import dead, own_name
from formwright.study.processes import Link, Stopped, Supervisor, WorkersDied, in_processes

pytestmark = pytest.mark.timeout(120)  # processes that start on a busy machine
ENDLESS = 5000


def squared(number: int) -> tuple[int, int, str | None]:
    return number * number, os.getpid(), os.environ.get("OMP_NUM_THREADS")


def refused(number: int) -> int:
    raise IllegalInput(f"not {number}")


def slow(number: int) -> int:
    time.sleep(0.2)
    return number


def counted(folder: Path, name: str, steps: int, deaths: int, link: Link) -> str:
    """Count to a number, a file for each step; let the first processes that begin it die."""
    begun = folder / f"begun-{name}"
    begun.write_text(begun.read_text() + "." if begun.exists() else ".")
    if len(begun.read_text()) <= deaths:
        os._exit(9)
    (folder / name).mkdir(exist_ok=True)
    for step in range(len(list((folder / name).iterdir())), steps):
        (folder / name / str(step)).touch()
        link.step(step, float(step))
        time.sleep(0.01 if steps == ENDLESS else 0)
        if link.asked():
            raise Stopped
    return name


def test_one_worker_is_this_process_and_keeps_the_order() -> None:
    found = list(in_processes(squared, range(5), 1))
    assert [square for square, _, _ in found] == [0, 1, 4, 9, 16]
    assert {process for _, process, _ in found} == {os.getpid()}


@pytest.mark.slow
def test_several_workers_do_every_job_once_on_one_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    found = list(in_processes(squared, range(20), 2))
    assert sorted(square for square, _, _ in found) == [number * number for number in range(20)]
    assert os.getpid() not in {process for _, process, _ in found}
    assert len({process for _, process, _ in found}) <= 2
    assert {threads for _, _, threads in found} == {"1"}
    assert os.environ["OMP_NUM_THREADS"] == "7"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "error", "told"),
    [
        (refused, IllegalInput, "not 9"),
        (os._exit, WorkersDied, "exit code 9; is memory short"),
        (lambda number: number / 0, ZeroDivisionError, "division"),  # lambdas travel too
        (lambda _: multiprocessing.get_context("spawn").Lock(), WorkersDied, "cannot be sent"),
    ],
)
def test_what_goes_wrong_in_a_job_is_told(work: Callable[[int], object], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        list(in_processes(work, [9], 2))


@pytest.mark.slow
def test_who_stops_asking_waits_for_no_job() -> None:
    taken: list[int] = []

    def jobs() -> Iterator[int]:
        for number in range(1_000):
            taken.append(number)
            yield number

    results = in_processes(slow, jobs(), 2)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert len(taken) < 10
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_the_payload_of_a_process_that_dies_is_given_to_another_so_many_times(tmp_path: Path) -> None:
    told: list[str] = []
    payloads = [partial(counted, tmp_path, name, 5, deaths) for name, deaths in (("a", 1), ("b", 0))]
    found = Supervisor(2, replacements=1, tell=told.append).results(payloads)
    assert dict(found) == {0: "a", 1: "b"}
    assert len(list(tmp_path.glob("?/*"))) == 10
    assert len(told) == 1
    assert "exit code 9" in told[0]
    with pytest.raises(WorkersDied, match="died 2 times, the last with exit code 9"):
        list(Supervisor(2, replacements=1, tell=told.append).results([partial(counted, tmp_path, "c", 5, 5)]))


@pytest.mark.slow
def test_an_error_that_a_user_causes_is_no_death() -> None:
    told: list[str] = []
    with pytest.raises(IllegalInput, match="not 9"):
        list(Supervisor(1, replacements=2, tell=told.append).results([lambda _: refused(9)]))
    assert told == []


@pytest.mark.slow
@pytest.mark.parametrize("ended", [0, 1])
def test_a_wish_to_stop_is_heard_between_two_steps(tmp_path: Path, ended: int) -> None:
    seen: set[int] = set()
    names = [("a", ENDLESS), ("b", ENDLESS), ("c", 1)][:: -1 if ended else 1]
    payloads = [partial(counted, tmp_path, name, steps, 0) for name, steps in names]
    supervisor = Supervisor(2, asked=lambda: len(seen) > 2 * ended, step=lambda number, *_: seen.add(number))
    with pytest.raises(Stopped):
        list(supervisor.results(payloads))
    assert 0 < len(list(tmp_path.glob("a/*"))) < ENDLESS
    assert (tmp_path / "c" / "0").exists() == bool(ended)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("conducted", [Supervisor.results, Supervisor.results_here])
def test_payloads_that_nobody_began_are_not_taken_for_done(conducted: Callable[..., Iterator[object]]) -> None:
    payloads = [partial(counted, Path("absent"), "a", 1, 0)]
    with pytest.raises(Stopped):
        list(conducted(Supervisor(2, asked=lambda: True), payloads))
    assert list(conducted(Supervisor(2, asked=lambda: True), [])) == []


def test_without_processes_the_same_is_done_and_stopped_here(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    supervisor = Supervisor(
        1, asked=lambda: seen[-1:] == [(1, 2)], step=lambda number, step, _: seen.append((number, step))
    )
    payloads = [partial(counted, tmp_path, name, 5, 0) for name in "ab"]
    with pytest.raises(Stopped):
        list(supervisor.results_here(payloads))
    assert seen == [(0, step) for step in range(5)] + [(1, step) for step in range(3)]


LAUNCH = """
import os, time
from pathlib import Path
from formwright.study.processes import Supervisor

class Mine:  # of the script alone, which is no module that a worker could import, and has no guard
    def __call__(self, link):
        Path(f"{os.getpid()}.worker").touch()
        time.sleep(600)

list(Supervisor(2).results([Mine(), Mine()]))
"""


@pytest.mark.long
def test_processes_do_what_a_script_defines_and_do_not_outlive_their_launcher(tmp_path: Path) -> None:
    (tmp_path / "launch.py").write_text(LAUNCH, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(formwright.__file__).parents[1])}
    with subprocess.Popen([sys.executable, "launch.py"], env=environment, cwd=tmp_path) as launcher:
        while len(workers := [int(path.stem) for path in tmp_path.glob("*.worker")]) < 2:
            assert launcher.poll() is None
            time.sleep(0.05)
        launcher.kill()
        launcher.wait()
    deadline = time.monotonic() + 10
    while any(map(_is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_is_alive, workers))


def _is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


SLEEP = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]


def name_of(process: int) -> str:
    """Give the name that another process has for itself."""
    stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    return f"{own_name().rsplit('/', 2)[0]}/{process}/{stat.rpartition(')')[2].split()[19]}"


def test_a_worker_knows_its_own_name_and_lives_under_no_other() -> None:
    assert name_of(os.getpid()) == own_name()
    assert own_name().startswith(socket.gethostname())
    assert dead([own_name(), name_of(os.getppid())]) == frozenset()
    machine, process, began = own_name().rsplit("/", 2)
    earlier = f"{machine}/{process}/{int(began) - 1}"
    assert dead([earlier, own_name()]) == {earlier}
    assert dead([f"{socket.gethostname()}/999999999/1", f"{socket.gethostname()}-00000000/999999999/1"]) == frozenset()


def test_a_killed_process_is_dead_even_before_its_parent_notices() -> None:
    with subprocess.Popen(SLEEP, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        name = name_of(process.pid)
        assert dead([name]) == frozenset()
        process.kill()
        deadline = time.monotonic() + 10
        while not dead([name]) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert process.returncode is None  # nobody waited for it yet
        assert dead([name]) == {name}
        process.wait()
        assert dead([name, own_name()]) == {name}


@pytest.mark.parametrize(
    "name", ["elsewhere/1/1", "elsewhere/999999999/1", "a/b/999999999/1", "nobody", "", "me", "x/y", f"{'/' * 5}"]
)
def test_of_others_nothing_is_known(name: str) -> None:
    assert dead([name]) == frozenset()


def test_where_the_system_tells_nothing_the_host_has_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise OSError

    monkeypatch.setattr(Path, "read_text", refuse)
    assert own_name() == f"{socket.gethostname()}/{os.getpid()}/?"
    assert dead([own_name()]) == frozenset()
    gone = f"{socket.gethostname()}/999999999/?"
    assert dead([gone]) == {gone}


def hold(folder: Path, held: Event, go_on: Event) -> None:
    with alone_in(folder):
        held.set()
        go_on.wait(30)
        (folder / "first").touch()


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
def test_who_comes_second_waits_for_the_first_to_end(tmp_path: Path, killed: bool) -> None:
    context = multiprocessing.get_context("spawn")
    held, go_on = context.Event(), context.Event()
    folder = tmp_path / "not" / "there yet"
    first = context.Process(target=hold, args=(folder, held, go_on))
    first.start()
    assert held.wait(30)
    began = time.monotonic()
    second = os.fork()  # waits in the system, where only another process can
    if second == 0:
        try:
            with alone_in(folder):
                os._exit(7 if killed or (folder / "first").exists() else 1)
        finally:
            os._exit(2)  # whatever happens, there is no second pytest
    time.sleep(0.2)
    assert os.waitpid(second, os.WNOHANG) == (0, 0)
    if killed:
        first.kill()
    else:
        go_on.set()
    assert os.waitstatus_to_exitcode(os.waitpid(second, 0)[1]) == 7
    assert time.monotonic() - began < 20
    first.join()


def test_a_folder_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IllegalInput, match="cannot write"), alone_in(tmp_path / "file"):
        pass
    with (
        alone_in(tmp_path),
        pytest.raises(IllegalInput, match=r"another process works in .*; wait for it, or name another folder"),
        alone_in(tmp_path, wait=False),
    ):
        pytest.fail("two at once")
    with alone_in(tmp_path, wait=False):
        pass
