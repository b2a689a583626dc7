"""Local workers: processes of one thread each, started, watched and, where they die, replaced."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from formwright.core.errors import FormwrightError
from formwright.core.text import printable
from formwright.study.place import Place
from formwright.train.interrupt import gentle_interruption

PAUSE = 0.25  # seconds between two looks at the workers
STOPPED = 3  # the exit code of a worker that was asked to stop
FAULTY = 4  # and of one that met an error which meets every worker


class WorkersDied(FormwrightError):
    """Say that worker processes kept dying."""


def run_workers(place: Place, number: int, look: Callable[[], None], replacements: int = 10) -> bool:
    """Run a study with so many processes until it is over; `look` is called several times a second.

    Return False when the user asked to stop, even where the last trial ended before it could be heard. A worker that
    dies is replaced, at most `replacements` times: the others take over its trial. Workers do not outlive the process
    that started them.
    """
    team = _Team(place, replacements)
    with one_thread_each(), gentle_interruption() as wish:
        try:
            for _ in range(number):
                team.hire()
            while team.at_work(asked=wish.asked):
                look()
                time.sleep(PAUSE)
        finally:
            team.dismiss()
    look()
    return not wish.asked


class _Team:
    """Worker processes, each with the pipe by which it is asked to stop."""

    def __init__(self, place: Place, replacements: int) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._place = place
        self._deaths, self._borne = 0, replacements
        self._members: dict[BaseProcess, Connection] = {}
        self._asked = False

    def hire(self) -> None:
        reader, writer = self._context.Pipe(duplex=False)
        worker = self._context.Process(target=_work_and_exit, args=(self._place, reader), name="formwright worker")
        with without_interruption():
            worker.start()
        reader.close()  # the worker has its own end now
        self._members[worker] = writer

    def at_work(self, *, asked: bool) -> bool:
        """Replace members that died and part with those that are done; tell whether any is left."""
        if asked and not self._asked:
            self._asked = True
            for writer in self._members.values():
                with suppress(OSError):  # it ended just now
                    writer.send_bytes(b"stop")
        for worker in [worker for worker in self._members if not worker.is_alive()]:
            self._members.pop(worker).close()
            worker.join()
            self._judge(worker.exitcode)
        return bool(self._members)

    def dismiss(self) -> None:
        """End every member that is left."""
        for worker in self._members:
            worker.terminate()
        for worker, writer in self._members.items():
            worker.join()
            writer.close()
        self._members.clear()

    def _judge(self, code: int | None) -> None:
        if code == FAULTY:
            raise WorkersDied("a worker could not work on the study; its message stands above")
        if code in {0, STOPPED} or self._asked:
            return
        if self._deaths == self._borne:
            raise WorkersDied(f"worker processes died {self._deaths + 1} times; is memory short?")
        self._deaths += 1
        print(f"a worker died (exit code {code}); another one takes its place", file=sys.stderr, flush=True)
        self.hire()


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let processes that are started compute with one thread: two of them beat one that has two."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TOKENIZERS_PARALLELISM")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def without_interruption() -> Iterator[None]:
    """Let processes that are started not hear Ctrl-C: a terminal sends it to them too, and their launcher tells them.

    This process hears it afterwards.
    """
    resource_tracker.ensure_running()  # it would unblock the signal when the first process is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_launcher() -> None:
    """End this process when the one that started it does, however that comes about."""
    launcher = multiprocessing.parent_process()
    assert launcher is not None, "only processes that were started have a launcher"

    def follow() -> None:
        launcher.join()
        # At once, not at the next step: whoever goes on with the study must find no trial of ours under way, or it
        # would propose beside it what it should propose after it.
        os._exit(STOPPED)

    threading.Thread(target=follow, daemon=True, name="launcher").start()


def _work_and_exit(place: Place, reader: Connection) -> None:
    end_with_launcher()
    sys.exit(_work(place, reader.poll))


def work_at(place: Place) -> int:
    """Work on a study in this process until it is over or the process is asked to stop; return an exit code."""
    with gentle_interruption() as wish:
        return _work(place, lambda: wish.asked)


def _work(place: Place, asked: Callable[[], bool]) -> int:
    # imported here: a launcher that only starts and watches needs no torch
    from formwright.study.assemble import assemble  # noqa: PLC0415
    from formwright.study.worker import Interrupted, Worker  # noqa: PLC0415

    def between_steps() -> None:
        if asked():
            raise Interrupted

    try:
        with place.open(wait=True) as opened:
            Worker(assemble(opened.config, opened.log, place.folder), between_steps=between_steps).run()
    except Interrupted:
        return STOPPED
    except FormwrightError as error:
        print(printable(f"formwright: {error}"), file=sys.stderr, flush=True)
        return FAULTY
    return 0
