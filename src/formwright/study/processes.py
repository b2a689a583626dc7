"""Work in several processes, which are supervised: payloads with results, or workers of a study."""

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

import cloudpickle

from formwright.core.errors import FormwrightError
from formwright.core.text import printable
from formwright.train.interrupt import gentle_interruption

Job = TypeVar("Job")
Result = TypeVar("Result")
Payload = Callable[["Link"], Any]
Step = Callable[[int, int, float], None]  # called with the number of a payload, its step and its loss
PAUSE = 0.25  # seconds between two looks at the processes
STOPPED = 3  # the exit code of a process that was asked to stop
FAULTY = 4  # and of one that met an error which would meet every other one


class WorkersDied(FormwrightError):
    """Say that worker processes died."""


class Stopped(Exception):
    """Say that work was left because the user asked to stop; a payload raises it, and so does the supervisor."""


@dataclass(frozen=True)
class Link:
    """What a payload is given: `asked` says whether to stop, `step` is called with each step and its loss."""

    asked: Callable[[], bool]
    step: Callable[[int, float], None]


@dataclass(frozen=True)
class Supervisor:
    """Say how payloads are conducted: by how many processes, which get one thread each.

    `asked` says whether the user wants to stop: payloads under way learn of it by their link, and no other is begun.
    `look` is called several times a second, and `step` for the steps that payloads report; what they raise ends all. A
    process that dies, or meets an unexpected error, is replaced, and its payload given to another one, at most
    `replacements` times. An error that a user causes is raised here.
    """

    workers: int
    asked: Callable[[], bool] = lambda: False
    look: Callable[[], None] = lambda: None
    step: Step = lambda *_: None
    replacements: int = 0
    tell: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True)

    def results(self, payloads: Iterable[Payload]) -> Iterator[tuple[int, Any]]:
        """Give the number and the result of each payload as it ends; raise `Stopped` where some did not end.

        Payloads are taken one by one, when a process is free. Whoever asks for no further result ends the processes.
        """
        team = _RunningProcesses(self, enumerate(payloads))
        try:
            while team.at_work():
                yield from team.ended()
                self.look()
        finally:
            team.dismiss()
        self.look()
        if team.is_left:
            raise Stopped

    def results_here(self, payloads: Iterable[Payload]) -> Iterator[tuple[int, Any]]:
        """Do what `results` does in this process, one payload after the other."""
        for number, payload in enumerate(payloads):
            if self.asked():
                raise Stopped
            yield number, payload(Link(self.asked, partial(self.step, number)))
            self.look()


def in_processes(work: Callable[[Job], Result], jobs: Iterable[Job], workers: int) -> Iterator[Result]:
    """Give the result of each job as it ends, in no fixed order; with one worker, this process does them in order."""
    if workers == 1:
        yield from map(work, jobs)
        return
    for _, result in Supervisor(workers).results(partial(_job, work, job) for job in jobs):
        yield result


def _job(work: Callable[[Job], Result], job: Job, _: Link) -> Result:
    return work(job)


class _RunningProcesses:
    """The processes of a supervisor, each with its pipe; `busy` has the payload that each works on."""

    def __init__(self, orders: Supervisor, payloads: Iterator[tuple[int, Payload]]) -> None:
        self._orders, self._payloads = orders, payloads
        self._again: list[tuple[int, Payload]] = []  # those whose process died
        self._context = multiprocessing.get_context("spawn")
        self._idle: dict[Connection, BaseProcess] = {}
        self.busy: dict[Connection, tuple[BaseProcess, int, Payload]] = {}
        self.is_left, self._stopping, self._deaths = False, False, 0

    def at_work(self) -> bool:
        """Hand out payloads while there are any, or ask those under way to stop; tell whether any is left."""
        if self._orders.asked() and not self._stopping:
            self._stopping, self.is_left = True, self._next() is not None
            for pipe in self.busy:
                with suppress(OSError):  # it ended just now
                    pipe.send_bytes(b"")
        while not self._stopping and len(self.busy) < self._orders.workers and (found := self._next()) is not None:
            self._hand_out(*found)
        return bool(self.busy)

    def _next(self) -> tuple[int, Payload] | None:
        return self._again.pop(0) if self._again else next(self._payloads, None)

    def _hand_out(self, number: int, payload: Payload) -> None:
        data = cloudpickle.dumps(payload)
        pipe, process = self._idle.popitem() if self._idle else self._hire()
        self.busy[pipe] = process, number, payload
        with suppress(OSError):  # it died just now, which is seen soon
            pipe.send_bytes(data)

    def _hire(self) -> tuple[Connection, BaseProcess]:
        pipe, own = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(own,), name="formwright worker")
        with one_thread_each(), without_interruption(), _without_main():
            process.start()
        own.close()  # the process has its own end now
        return pipe, process

    def ended(self) -> Iterator[tuple[int, Any]]:
        """Wait a moment, and give the results of what has ended; raise what went wrong."""
        until = time.monotonic() + PAUSE
        while self.busy and (ready := wait([*self.busy], max(until - time.monotonic(), 0.0))):
            for pipe in [pipe for pipe in self.busy if pipe in ready]:
                yield from self._hear(pipe)
            if len(self.busy) < self._orders.workers:
                return

    def _hear(self, pipe: Connection) -> Iterator[tuple[int, Any]]:
        process, number, payload = self.busy[pipe]
        try:
            kind, value = pickle.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            kind, value = "error", None
        if kind == "step":
            self._orders.step(number, *value)
            return
        del self.busy[pipe]
        if kind == "error":
            _end(pipe, process)
            self._replace(number, payload, value or f"exit code {process.exitcode}")
            return
        self._idle[pipe] = process
        self.is_left |= kind == "stopped"
        if kind == "result":
            yield number, value

    def _replace(self, number: int, payload: Payload, why: str | BaseException) -> None:
        """Give a payload to another process, unless its error would meet that one too, or too many died."""
        if isinstance(why, BaseException) and (isinstance(why, FormwrightError) or not self._orders.replacements):
            raise why
        self.is_left |= self._stopping
        if self._stopping:
            return
        self._deaths += 1
        detail = why if isinstance(why, str) else f"{type(why).__name__}: {why}"
        if self._deaths > self._orders.replacements:
            raise WorkersDied(f"worker processes died {self._deaths} times, the last with {detail}; is memory short?")
        self._again.append((number, payload))
        self._orders.tell(printable(f"a worker died ({detail}); another one takes its place"))

    def dismiss(self) -> None:
        """End every process that is left."""
        left = {pipe: process for pipe, (process, _, _) in self.busy.items()} | self._idle
        for pipe, process in left.items():
            _end(pipe, process)


def _end(pipe: Connection, process: BaseProcess) -> None:
    process.terminate()
    process.join()
    pipe.close()


def _serve(pipe: Connection) -> None:
    end_with_launcher()
    while data := pipe.recv_bytes():  # an empty one is a request to stop that came too late
        try:
            reply = "result", pickle.loads(data)(_link(pipe))
        except Stopped:
            reply = "stopped", None
        except BaseException as error:
            if not isinstance(error, FormwrightError):
                error.add_note(traceback.format_exc())
            reply = "error", error
        pipe.send_bytes(_dumped(reply))


def _link(pipe: Connection) -> Link:
    """Give the link of a payload: what comes by the pipe while it works is the request to stop, and stays there."""
    due = 0.0

    def step(step: int, loss: float) -> None:
        nonlocal due
        if time.monotonic() >= due:
            pipe.send_bytes(pickle.dumps(("step", (step, loss))))
            due = time.monotonic() + PAUSE

    return Link(pipe.poll, step)


def _dumped(reply: tuple[str, Any]) -> bytes:
    try:
        data: bytes = cloudpickle.dumps(reply)
        pickle.loads(data)
    except Exception as error:  # whatever a result or an error of the user's own does when it is pickled
        lost = f"the result of a worker cannot be sent ({type(error).__name__}: {error}): {reply[1]!r}"
        return pickle.dumps(("error", WorkersDied(lost)))
    return data


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

    This process gets it afterwards.
    """
    resource_tracker.ensure_running()  # it would unblock the signal when the first process is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_main() -> Iterator[None]:
    """Let processes that are started not run the user's script again: cloudpickle sends what they need of it."""
    own = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = own


def end_with_launcher() -> None:
    """End this process when the one that started it does, however that comes about."""
    launcher = multiprocessing.parent_process()
    assert launcher is not None, "only processes that were started have a launcher"

    def follow() -> None:
        launcher.join()
        # At once, not at the next step: whoever resumes the study must find no trial of ours under way, or it
        # would propose at the same time what it should propose after it.
        os._exit(STOPPED)

    threading.Thread(target=follow, daemon=True, name="launcher").start()


Work = Callable[[Callable[[], bool]], int]  # is given what tells whether it is asked to stop, and gives an exit code


def run_workers(work: Work, number: int, look: Callable[[], None], replacements: int = 10) -> bool:
    """Do some work in N processes at once until all are done; `look` is called several times a second.

    Return False when the user asked to stop, even where the last trial ended before it could be handled. A worker that
    dies is replaced, at most `replacements` times: the others take over its trial. Workers do not outlive the process
    that started them.
    """
    with gentle_interruption() as interruption:
        supervisor = Supervisor(number, asked=lambda: interruption.asked, look=look, replacements=replacements)
        with suppress(Stopped):
            for _ in supervisor.results([partial(_until_stopped, work)] * number):
                pass
    return not interruption.asked


def _until_stopped(work: Work, link: Link) -> None:
    if work(link.asked) == STOPPED:
        raise Stopped


def exit_code(work: Work, asked: Callable[[], bool]) -> int:
    """Do some work in this process and give its exit code; an error of the user's is shown."""
    try:
        return work(asked)
    except FormwrightError as error:
        print(printable(f"formwright: {error}"), file=sys.stderr, flush=True)
        return FAULTY
