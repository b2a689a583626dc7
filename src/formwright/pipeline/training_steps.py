"""How far a training is that another process does: its last step and loss, in a file of its folder."""

import time
from collections.abc import Callable
from pathlib import Path

from formwright.core.files import write_whole

STEP = "step"
SECONDS = 1.0  # between two writings


def step_writer(folder: Path) -> Callable[[int, float], None]:
    """Give the function that is told of each step and its loss, and writes down the latest now and then."""
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
