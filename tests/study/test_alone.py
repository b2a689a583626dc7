import multiprocessing
import os
import time
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from formwright.core.errors import IllegalInput
from formwright.study.alone import alone_in


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
