"""What a search has cost, and when it is over."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from formwright.core.checks import finite, natural
from formwright.core.errors import IllegalInput
from formwright.core.records import History, Objective, Spent
from formwright.search.scores import longest, score
from formwright.study.events import Event


@dataclass(frozen=True)
class Ledger:
    """Add up the trials and what they spent; `elapsed` is how long the study searched, without pauses and deliveries.

    `failed_lately` counts the failures since the study was last begun or resumed, without designs that a measured limit
    refused. `refused` counts those, since the last trial with another outcome.
    """

    finished: int
    failed: int
    pending: int
    spent: Spent
    elapsed: float
    failed_lately: int = 0
    refused: int = 0


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


_REFUSED = 200  # designs in a row after which a search ends that neither a number of trials nor a time ends


@dataclass(frozen=True)
class Stop:
    """Stop after a number of trials, seconds, training steps, or finished trials without a better one.

    A trial is better where a goal is by more than `tolerance`. `failures` is how many failed trials are allowed in one
    run, from its beginning or resumption on; a design that a measured limit refuses is a trial, but no failure.
    Whatever comes first counts; at least one limit must be given.
    """

    trials: int | None = None
    seconds: float | None = None
    steps: int | None = None
    patience: int | None = None
    failures: int = 20
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if (self.trials, self.seconds, self.steps, self.patience) == (None,) * 4:
            raise IllegalInput("say when to stop: after a number of trials, seconds, steps, or trials without progress")
        for name in ("trials", "steps", "patience"):
            value = getattr(self, name)
            if value is not None and natural(name, value) < 1:
                raise IllegalInput(f"{name} must be at least 1, not {value}")
        if self.seconds is not None and finite("seconds", self.seconds) <= 0:
            raise IllegalInput(f"seconds must be above 0, not {self.seconds}")
        natural("failures", self.failures)
        if finite("tolerance", self.tolerance) < 0:
            raise IllegalInput(f"tolerance must be at least 0, not {self.tolerance}")

    def reason(self, history: History, ledger: Ledger, objectives: Sequence[Objective]) -> str | None:
        """Say why no further trial is to be asked for; None while the search continues."""
        if ledger.failed_lately > self.failures:
            return f"{ledger.failed_lately} trials failed, more than the allowed {self.failures}"
        reason = next((reason for _, reason in self._reached(history, ledger, objectives)), None)
        if reason is None and self.trials is None and self.seconds is None and ledger.refused >= _REFUSED:
            return f"a measured limit refused the last {ledger.refused} designs"
        if reason is not None and 0 < ledger.refused == len(history.trials):
            return f"{reason}; a measured limit refused every design"
        return reason

    def reached(self, history: History, ledger: Ledger, objectives: Sequence[Objective]) -> tuple[str, ...]:
        """Name the limits that end the search: of `trials`, `seconds`, `steps` and `patience`."""
        return tuple(name for name, _ in self._reached(history, ledger, objectives))

    def _reached(self, history: History, ledger: Ledger, objectives: Sequence[Objective]) -> Iterator[tuple[str, str]]:
        if self.trials is not None and len(history.trials) >= self.trials:
            yield "trials", f"{len(history.trials)} trial{'' if len(history.trials) == 1 else 's'}"
        if self.seconds is not None and ledger.elapsed >= self.seconds:
            yield "seconds", f"{self.seconds:g} seconds"
        if self.steps is not None and ledger.spent.steps >= self.steps:
            yield "steps", f"{self.steps} training steps"
        if self.patience is not None and since_progress(history, objectives, self.tolerance) >= self.patience:
            yield "patience", f"no better design in {self.patience} trials"


def since_progress(history: History, objectives: Sequence[Objective], tolerance: float = 0.0) -> int:
    """Count the finished trials since the last one that no earlier trial was at least as good as in every goal.

    An earlier trial that is worse by no more than `tolerance` is as good.
    Only trials at the largest budget so far count: scores after different numbers of steps cannot be compared.
    """
    trials = longest(history.finished)
    if not trials:
        return 0
    scores = score(trials, objectives)
    # a violated limit counts before the goals do; a row is better when it is smaller in some column
    points = np.column_stack((scores.violations, np.where(scores.violations[:, None] > 0, 0.0, scores.values)))
    margins = np.array([0.0] + [tolerance] * (points.shape[1] - 1))  # none for limits
    for last in range(len(points) - 1, -1, -1):
        at_least_as_good = (points[:last] <= points[last] + margins).all(axis=1)
        if not at_least_as_good.any():
            return len(points) - 1 - last
    return len(points)
