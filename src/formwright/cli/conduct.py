"""How a training is conducted from the command line: shown, saved, and stopped between two steps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from formwright.cli.progress import showing

if TYPE_CHECKING:
    from formwright.train.fit import Run
    from formwright.train.interrupt import Interruption


class Interrupted(Exception):
    """Say at which step the user stopped the run."""


@contextmanager
def conducted(
    what: str, folder: Path, steps: int, every: int, wish: "Interruption", check: Callable[[], None]
) -> "Iterator[Run]":
    """Give a run that is saved every so many steps, shown, and stopped between two steps when the user wishes.

    `check` is asked before anything is saved.
    """
    from formwright.train.fit import Run
    from formwright.train.loop import Paused, Saving

    with showing(what, steps) as tell:

        def after_step(step: int, loss: float) -> None:
            tell(step, loss)
            if wish.asked or step + 1 == steps or (every and (step + 1) % every == 0):
                check()
            if wish.asked and step + 1 < steps:
                raise Paused(f"step {step + 1:,} of {steps:,} of {what}")

        try:
            yield Run(Saving(folder, every), after_step=after_step)
        except Paused as paused:
            raise Interrupted(str(paused)) from None
