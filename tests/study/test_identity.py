import multiprocessing
import os
import socket
import subprocess
import sys
import time
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from formwright.core.errors import IllegalInput
from formwright.study.folder_lock import alone_in
from formwright.study.identity import dead, own_name

SLEEP = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]


def name_of(process: int) -> str:
    """Give the name that another process has for itself."""
    stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    return f"{own_name().rsplit('/', 2)[0]}/{process}/{stat.rpartition(')')[2].split()[19]}"


def test_a_worker_knows_its_own_name_and_lives() -> None:
    assert name_of(os.getpid()) == own_name()
    assert own_name().startswith(socket.gethostname())
    assert dead([own_name(), name_of(os.getppid())]) == frozenset()


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


def test_a_number_that_is_used_again_is_another_worker() -> None:
    machine, process, began = own_name().rsplit("/", 2)
    earlier = f"{machine}/{process}/{int(began) - 1}"
    assert dead([earlier, own_name()]) == {earlier}


@pytest.mark.parametrize(
    "name", ["elsewhere/1/1", "elsewhere/999999999/1", "a/b/999999999/1", "nobody", "", "me", "x/y", f"{'/' * 5}"]
)
def test_of_others_nothing_is_known(name: str) -> None:
    assert dead([name]) == frozenset()


def test_a_container_of_the_same_host_name_is_another_machine() -> None:
    assert dead([f"{socket.gethostname()}/999999999/1", f"{socket.gethostname()}-00000000/999999999/1"]) == frozenset()


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
        with alone_in(folder):
            os._exit(7 if killed or (folder / "first").exists() else 1)
    time.sleep(0.2)
    assert os.waitpid(second, os.WNOHANG) == (0, 0)
    if killed:
        first.kill()
    else:
        go_on.set()
    assert os.waitstatus_to_exitcode(os.waitpid(second, 0)[1]) == 7
    assert time.monotonic() - began < 20
    first.join()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IllegalInput, match="cannot write"), alone_in(tmp_path / "file"):
        pass


def test_who_will_not_wait_is_refused_while_another_holds_the_folder(tmp_path: Path) -> None:
    with (
        alone_in(tmp_path),
        pytest.raises(IllegalInput, match=r"another process works in .*; wait for it, or name another folder"),
        alone_in(tmp_path, wait=False),
    ):
        pytest.fail("two at once")
    with alone_in(tmp_path, wait=False):
        pass
