"""Local workers: processes of one thread each, started, watched and, where they die, replaced."""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess

from formwright.core.errors import EvaluationFailed, FormwrightError
from formwright.study.place import Place

_PAUSE = 0.25  # seconds between two looks at the workers
STOPPED = 3  # the exit code of a worker that was asked to stop
FAULTY = 4  # and of one that met an error which meets every worker


class WorkersDied(EvaluationFailed):
    """Say that worker processes kept dying."""


def run_workers(place: Place, number: int, look: Callable[[], None], replacements: int = 10) -> bool:
    """Run a study with so many processes until it is over; `look` is called several times a second.

    Return False when the workers were asked to stop before the study was over. A worker that dies is replaced, at most
    `replacements` times: the others take over its trial.
    """
    context = multiprocessing.get_context("spawn")
    left = replacements
    with one_thread_each():
        team = [_start(context, place) for _ in range(number)]
        stopped = False
        try:
            while team:
                look()
                time.sleep(_PAUSE)
                ended, team = [w for w in team if not w.is_alive()], [w for w in team if w.is_alive()]
                for worker in ended:
                    worker.join()
                    stopped |= worker.exitcode == STOPPED
                    if worker.exitcode == FAULTY:
                        raise WorkersDied("a worker could not work on the study; its message stands above")
                    if worker.exitcode not in (0, STOPPED) and not stopped:
                        if not left:
                            raise WorkersDied(f"worker processes died {replacements + 1} times; is memory short?")
                        left -= 1
                        team.append(_start(context, place))
        finally:
            for worker in team:
                worker.terminate()
            for worker in team:
                worker.join()
    look()
    return not stopped


def _start(context: multiprocessing.context.SpawnContext, place: Place) -> BaseProcess:
    worker = context.Process(target=_work_and_exit, args=(place,), name="formwright worker")
    worker.start()
    return worker


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


def _work_and_exit(place: Place) -> None:
    sys.exit(work_at(place))


def work_at(place: Place) -> int:
    """Work on a study in this process until it is over or the process is asked to stop; return an exit code."""
    # imported here: a launcher that only starts and watches needs no torch
    from formwright.study.assemble import assemble  # noqa: PLC0415
    from formwright.study.worker import Interrupted, Worker  # noqa: PLC0415
    from formwright.train.interrupt import gentle_interruption  # noqa: PLC0415

    try:
        with place.open() as opened, gentle_interruption() as wish:

            def between_steps() -> None:
                if wish.asked:
                    raise Interrupted

            Worker(assemble(opened.config, opened.log, place.folder), between_steps=between_steps).run()
    except Interrupted:
        return STOPPED
    except FormwrightError as error:
        print(f"formwright: {error}", file=sys.stderr, flush=True)
        return FAULTY
    return 0
