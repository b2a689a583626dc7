"""What a search has cost."""

from collections.abc import Iterable
from dataclasses import dataclass

from formwright.core.records import History, Spent
from formwright.study.events import Event


@dataclass(frozen=True)
class Ledger:
    """Add up the trials and what they spent; `elapsed` is how long the study ran, pauses between runs left out."""

    finished: int
    failed: int
    pending: int
    spent: Spent
    elapsed: float


def ledger_of(history: History, elapsed: float = 0.0) -> Ledger:
    """Add up a history."""
    observations = [trial.observation for trial in history.finished if trial.observation is not None]
    spent = Spent(
        sum(observation.spent.seconds for observation in observations),
        sum(observation.spent.steps for observation in observations),
        sum(observation.spent.macs for observation in observations),
    )
    pending, finished = len(history.pending), len(history.finished)
    return Ledger(finished, len(history.trials) - finished - pending, pending, spent, elapsed)


@dataclass
class Clock:
    """Measure how long a study ran: from the beginning of each run to the last event before the next one."""

    before: float = 0.0
    began: float | None = None
    last: float = 0.0

    def feed(self, events: Iterable[Event]) -> None:
        """Take further events; a launcher begins a run, the workers that it starts do not."""
        for event in events:
            if event.kind == "started" and event.data.get("begins"):
                self.before += 0.0 if self.began is None else max(self.last - self.began, 0.0)
                self.began = event.at
            elif self.began is None:
                self.began = event.at  # a worker without a launcher
            self.last = event.at

    def elapsed(self, now: float) -> float:
        """Give the seconds until now."""
        return self.before + (0.0 if self.began is None else max(now - self.began, 0.0))
