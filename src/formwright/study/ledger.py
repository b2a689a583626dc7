"""What a search has cost."""

from collections.abc import Iterable
from dataclasses import dataclass

from formwright.core.records import Spent
from formwright.study.events import Event


@dataclass(frozen=True)
class Ledger:
    """Add up the trials and what they spent; `elapsed` is how long the study searched, without pauses and deliveries.

    `failed_lately` counts the failures since the study was last begun or resumed.
    """

    finished: int
    failed: int
    pending: int
    spent: Spent
    elapsed: float
    failed_lately: int = 0


@dataclass
class Clock:
    """Measure how long a study searched: in each run from the first trial asked for or taken over to the stop.

    A run that was killed ends with its last event before the next one begins.
    """

    before: float = 0.0
    began: float | None = None
    last: float = 0.0

    def feed(self, events: Iterable[Event]) -> None:
        """Take further events; a launcher begins a run, the workers that it starts do not."""
        for event in events:
            if event.kind == "started" and event.data.get("begins"):
                self._pause()
            elif event.kind in ("asked", "claimed") and self.began is None:
                self.began = event.at  # only now: processes that start are no search yet
            self.last = event.at
            if event.kind == "stopped":
                self._pause()  # what follows is delivery, until someone asks again

    def _pause(self) -> None:
        self.before = self.elapsed(self.last)
        self.began = None

    def elapsed(self, now: float) -> float:
        return self.before + (0.0 if self.began is None else max(now - self.began, 0.0))
