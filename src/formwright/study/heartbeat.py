"""Keep a lease alive while a trial is evaluated."""

import threading
from types import TracebackType

from formwright.core.errors import FormwrightError
from formwright.study.log import Log

_BEATS = 4  # in the time of a lease


class LeaseLost(Exception):
    """Say that the trial is another worker's by now."""


class Heartbeat:
    """Renew a lease from a thread of its own until the evaluation is over."""

    def __init__(self, log: Log, number: int, worker: str, seconds: float) -> None:
        self._log, self._number, self._worker, self._seconds = log, number, worker, seconds
        self._over = threading.Event()
        self._lost = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True, name=f"lease of trial {number}")

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def check(self) -> None:
        """Raise `LeaseLost` when the lease could not be renewed because another worker has it."""
        if self._lost.is_set():
            raise LeaseLost

    def _beat(self) -> None:
        while not self._over.wait(self._seconds / _BEATS):
            try:
                if not self._log.renew(self._number, self._worker, self._seconds):
                    self._lost.set()
                    return
            except FormwrightError:
                continue  # a database that is away for a moment; the lease decides whether it was too long
