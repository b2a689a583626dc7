"""Ctrl-C that lets long work come to a good end."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interruption:
    """Remember that the user asked to stop."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self, number: int, _: FrameType | None) -> None:
        """Take a signal; a second one interrupts at once."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def gentle_interruption() -> Iterator[Interruption]:
    """Turn Ctrl-C and a request to terminate into a wish that is looked at between two steps."""
    wish = Interruption()
    before: dict[int, Any] = {number: signal.signal(number, wish) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
