"""Trainings in several processes, each a unit of work, and how far they are."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from formwright.core.files import write_whole
from formwright.pipeline.plan import WorkAmount
from formwright.pipeline.run import Interrupted, StageRun
from formwright.study.processes import Link, Stopped, Supervisor

if TYPE_CHECKING:
    from formwright.train.fit import Run


Training = Callable[["Run"], None]
_LEAST_STEPS, _MOST = 10, 50  # steps, and times the usual number of them, which no plan of time exceeds
_REPLACEMENTS = 10  # of processes that die, after which something must be wrong


@dataclass(frozen=True)
class Unit:
    """A training that does not depend on the others of its stage.

    `begin` gives what is done, with everything that it needs, and is called when a process is free to do it.
    """

    name: str
    steps: int
    begin: Callable[[], Training]


def train_units(run: StageRun, what: str, units: Sequence[Unit]) -> None:
    """Do all units, each resumed where it was stopped; leave the stage where the user asked to stop."""
    if not units:
        return
    total, seen = sum(unit.steps for unit in units), dict[int, tuple[int, float]]()
    with run.progress(what, total) as tell:

        def show(number: int, step: int, loss: float) -> None:
            """Show the steps of all units, and the mean of their losses."""
            seen[number] = step + 1, loss
            tell(sum(done for done, _ in seen.values()) - 1, sum(one for _, one in seen.values()) / len(seen))
            for observer in run.run.observers:
                observer.step(f"{run.name}/{units[number].name}", step, loss)

        supervisor = Supervisor(
            run.options.workers,
            asked=lambda: run.interruption.asked,
            step=show,
            replacements=_REPLACEMENTS,
            tell=run.tell,
        )
        # one worker is this process itself
        conduct = supervisor.results if run.options.workers > 1 else supervisor.results_here
        saved = [run.checkpoints / unit.name for unit in units]
        payloads = (
            partial(_train, unit.begin(), folder, run.options.save_every, unit.steps)
            for unit, folder in zip(units, saved, strict=True)
        )
        try:
            for number, _ in conduct(payloads):
                shutil.rmtree(saved[number], ignore_errors=True)
        except Stopped:
            raise Interrupted(f"step {sum(done for done, _ in seen.values()):,} of {total:,} of {what}") from None


def turns(units: int, workers: int) -> int:
    """Count how often the workers begin a unit, one after the other."""
    return -(-units // workers)


def steps_amount(usual: int, what: str) -> WorkAmount:
    """Say how many steps a unit usually has, and the least and the most that a plan of time gives it."""
    return WorkAmount(usual, _LEAST_STEPS, _MOST * usual, what)


def _train(training: Training, saved: Path, every: int, steps: int, link: Link) -> None:
    from formwright.train.fit import Run
    from formwright.train.loop import Paused, Saving

    def after_step(step: int, loss: float) -> None:
        link.step(step, loss)
        if step + 1 < steps and link.asked():
            raise Paused

    try:
        training(Run(Saving(saved, every), after_step=after_step))
    except Paused:
        raise Stopped from None


STEP = "step"
SECONDS = 1.0  # between two writings


def step_writer(folder: Path) -> Callable[[int, float], None]:
    """Give the function that is called with each step and its loss, and writes down the latest now and then."""
    due = 0.0

    def after_step(step: int, loss: float) -> None:
        nonlocal due
        if time.monotonic() >= due:
            write_whole(folder / STEP, f"{step} {loss!r}")
            due = time.monotonic() + SECONDS

    return after_step


def read_steps(folder: Path) -> dict[str, tuple[int, float]]:
    """Read the last step and loss of every training with a folder in this one, by the name of its folder."""
    found = {}
    for path in sorted(folder.glob(f"*/{STEP}")):
        step, _, loss = path.read_text(encoding="utf-8").partition(" ")
        found[path.parent.name] = int(step), float(loss)
    return found
