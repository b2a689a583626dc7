"""Many independent jobs in a few processes of one thread each."""

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TypeVar

from formwright.study.launch import WorkersDied, end_with_launcher, one_thread_each, without_interruption

Job = TypeVar("Job")
Result = TypeVar("Result")


def in_processes(work: Callable[[Job], Result], jobs: Iterable[Job], workers: int) -> Iterator[Result]:
    """Give the result of each job as it ends, in no fixed order; with one worker, this process does them in order.

    Work, jobs and results must be such that another process can import and unpickle them. Few jobs are handed out
    ahead, so that whoever stops asking waits for no more than those under way. The processes end with this one.
    """
    if workers == 1:
        yield from map(work, jobs)
        return
    queue = iter(jobs)
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), end_with_launcher)
    try:
        running: set[Future[Result]] = _handed_out(pool, work, islice(queue, workers + 1))
        while running:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            running |= _handed_out(pool, work, islice(queue, len(ended)))
            yield from [future.result() for future in ended]
    except BrokenProcessPool:
        raise WorkersDied("a process that worked for this one died; is memory short?") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _handed_out(pool: ProcessPoolExecutor, work: Callable[[Job], Result], jobs: Iterable[Job]) -> set[Future[Result]]:
    with one_thread_each(), without_interruption():  # a job that is handed out may start a process
        return {pool.submit(work, job) for job in jobs}
