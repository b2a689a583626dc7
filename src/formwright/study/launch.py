"""Local workers of a study, all at the same work until it is over."""

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from formwright.core.errors import FormwrightError
from formwright.core.text import printable
from formwright.study.processes import FAULTY, STOPPED, Link, Stopped, Supervisor
from formwright.train.interrupt import gentle_interruption

Work = Callable[[Callable[[], bool]], int]  # is given what tells whether it is asked to stop, and gives an exit code


def run_workers(work: Work, number: int, look: Callable[[], None], replacements: int = 10) -> bool:
    """Do some work in N processes at once until all are done; `look` is called several times a second.

    Return False when the user asked to stop, even where the last trial ended before it could be heard. A worker that
    dies is replaced, at most `replacements` times: the others take over its trial. Workers do not outlive the process
    that started them.
    """
    with gentle_interruption() as wish:
        supervisor = Supervisor(number, asked=lambda: wish.asked, look=look, replacements=replacements)
        with suppress(Stopped):
            for _ in supervisor.results([partial(_until_stopped, work)] * number):
                pass
    return not wish.asked


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
