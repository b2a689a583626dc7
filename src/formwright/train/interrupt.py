"""Ctrl-C handling that lets long work save its state first."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_INTERRUPTED = 130
_STANDARD_ERROR = 2
_SHOW_CURSOR = b"\x1b[?25h\n"


class Interruption:
    """Remember that the user asked to stop."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self, number: int, _: FrameType | None) -> None:
        """Handle a signal; a second one exits the process at once."""
        if self.asked:
            # an exception raised from here is lost where torch's own code happens to clear errors
            if os.isatty(_STANDARD_ERROR):
                os.write(_STANDARD_ERROR, _SHOW_CURSOR)  # a live display hides it
            os._exit(_INTERRUPTED)
        self.asked = True


@contextmanager
def gentle_interruption() -> Iterator[Interruption]:
    """Turn SIGINT and SIGTERM into a request to stop, which callers check between two steps."""
    request = Interruption()
    before: dict[int, Any] = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
