"""Independent trainings in a few processes of one thread each, shown together and stopped between two steps."""

import ctypes
import multiprocessing
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol

from formwright.core.errors import FormwrightError
from formwright.core.text import printable
from formwright.study.launch import FAULTY, PAUSE, STOPPED, WorkersDied, end_with_launcher, one_thread_each
from formwright.study.launch import without_interruption as deaf
from formwright.train.fit import Run
from formwright.train.loop import Paused, Saving

Tell = Callable[[int, float], None]
_BORNE = 10  # deaths of processes, after which something must be wrong


class Work(Protocol):
    """A training that another process can be given: it is pickled, and reads what it needs from files."""

    @property
    def steps(self) -> int: ...
    @property
    def saved(self) -> Path: ...
    def run(self, run: Run) -> None: ...


@dataclass(frozen=True)
class Crew:
    """Say how trainings are conducted: by how many processes, saved every so many steps, stopped when asked."""

    workers: int
    save_every: int
    asked: Callable[[], bool]
    showing: Callable[[str, int], AbstractContextManager[Tell]]

    def do(self, what: str, works: Sequence[Work]) -> None:
        """Do all trainings; raise `Paused` where the user asked to stop before the last was done."""
        if not works:
            return
        with self.showing(what, sum(work.steps for work in works)) as tell:
            board = _Board(works, tell)
            if self.workers == 1:
                for number, work in enumerate(works):
                    work.run(_run(work, self.save_every, board, number, self.asked))
                return
            with one_thread_each():
                self._in_processes(what, works, board)

    def _in_processes(self, what: str, works: Sequence[Work], board: "_Board") -> None:
        team = _Team(works, self.save_every, board)
        try:
            while team.running or (team.waiting and not team.stop.is_set()):
                while team.waiting and len(team.running) < self.workers and not team.stop.is_set():
                    team.hire()
                time.sleep(PAUSE)
                board.show()
                if self.asked():
                    team.stop.set()
                team.part()
        finally:
            for process in team.running:
                process.terminate()
                process.join()
        if team.stopped or team.waiting:
            raise Paused(f"step {board.done:,} of {sum(work.steps for work in works):,} of {what}")


class _Team:
    """Processes, each with the number of its training; the training of one that dies is given to another."""

    def __init__(self, works: Sequence[Work], every: int, board: "_Board") -> None:
        self._context = multiprocessing.get_context("spawn")
        self._works, self._every, self._board = works, every, board
        self.stop: Any = self._context.Event()
        self.waiting = list(range(len(works)))
        self.running: dict[BaseProcess, int] = {}
        self.stopped = False
        self._deaths = 0

    def hire(self) -> None:
        """Start a process for the next training."""
        number = self.waiting.pop(0)
        board = self._board
        arguments = (self._works[number], self._every, board.steps, board.losses, number, self.stop)
        process = self._context.Process(target=_work_and_exit, args=arguments, name="formwright worker")
        with deaf():
            process.start()
        self.running[process] = number

    def part(self) -> None:
        """Part with processes that have ended; raise where one met an error, or too many died."""
        for process in [process for process in self.running if not process.is_alive()]:
            number = self.running.pop(process)
            process.join()
            if process.exitcode == FAULTY:
                raise WorkersDied("a training could not go on; its message stands above")
            self.stopped |= process.exitcode == STOPPED
            if process.exitcode not in (0, STOPPED):
                self._replace(number, process.exitcode)

    def _replace(self, number: int, code: int | None) -> None:
        self._deaths += 1
        if self._deaths > _BORNE:
            raise WorkersDied(
                f"training processes died {self._deaths} times, the last with exit code {code}; is memory short? The "
                "same command goes on"
            )
        self.waiting.insert(0, number)
        if not self.stop.is_set():
            told = f"a training process died (exit code {code}); another one goes on with its work"
            print(told, file=sys.stderr, flush=True)


class _Board:
    """The steps that each training has done, and its last loss, in memory that processes share."""

    def __init__(self, works: Sequence[Work], tell: Tell) -> None:
        context = multiprocessing.get_context("spawn")
        self.steps: Any = context.Array(ctypes.c_longlong, len(works))
        self.losses: Any = context.Array(ctypes.c_double, len(works))
        self._tell, self._told = tell, 0

    @property
    def done(self) -> int:
        """Count the steps of all trainings."""
        return sum(self.steps[:])

    def show(self) -> None:
        """Tell how far all are, where any went on."""
        if self.done > self._told:
            self._told = self.done
            losses = [loss for steps, loss in zip(self.steps[:], self.losses[:], strict=True) if steps]
            self._tell(self._told - 1, sum(losses) / len(losses))


def _run(work: Work, every: int, board: _Board, number: int, asked: Callable[[], bool]) -> Run:
    """Give the run of a training in this process."""

    def after_step(step: int, loss: float) -> None:
        _note(board.steps, board.losses, number, step, loss)
        board.show()
        if asked() and step + 1 < work.steps:
            raise Paused(f"step {step + 1:,} of {work.steps:,} of {work.saved.name}")

    return Run(Saving(work.saved, every), after_step=after_step)


def _note(steps: Any, losses: Any, number: int, step: int, loss: float) -> None:
    steps[number], losses[number] = step + 1, loss


def _work_and_exit(work: Work, every: int, steps: Any, losses: Any, number: int, stop: Any) -> None:
    end_with_launcher()

    def after_step(step: int, loss: float) -> None:
        _note(steps, losses, number, step, loss)
        if stop.is_set() and step + 1 < work.steps:
            raise Paused

    try:
        work.run(Run(Saving(work.saved, every), after_step=after_step))
    except Paused:
        sys.exit(STOPPED)
    except FormwrightError as error:
        print(printable(f"formwright: {error}"), file=sys.stderr, flush=True)
        sys.exit(FAULTY)
