"""Trials as rows of a table: what the log says of each, and what its card costs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from formwright.arch.card import Card
from formwright.core.records import History, Objective, State, Trial
from formwright.cost import macs, params
from formwright.study.events import Event
from formwright.study.ledger import Clock


@dataclass(frozen=True)
class TrialRow:
    """One trial. `started` and `finished` are seconds since 1970; `elapsed` is how long the study had run by its end.

    `budget` is the number of training steps that was asked for, None for a whole training; `steps` those that it took.
    """

    number: int
    state: State
    card: Card
    digest: str
    metrics: Mapping[str, float] = field(hash=False)
    costs: Mapping[str, int] = field(hash=False)
    feasible: bool
    seconds: float | None
    parent: int | None
    budget: int | None
    steps: int | None
    reason: str
    worker: str
    started: float | None
    finished: float | None
    elapsed: float | None

    @property
    def values(self) -> dict[str, float]:
        """Give every number that can be drawn: costs, and metrics, which say more where both have a name."""
        return {**self.costs, **self.metrics}


@dataclass
class _Times:
    """When a trial began and ended, and who worked on it last."""

    worker: str = ""
    started: float | None = None
    finished: float | None = None
    elapsed: float | None = None


def trial_rows(
    history: History, events: Sequence[Event], limits: Sequence[Objective], length: int
) -> tuple[TrialRow, ...]:
    """Make one row for each trial; operations are counted for `length` tokens."""
    times = _times(events)
    return tuple(_row(trial, times.get(trial.number, _Times()), limits, length) for trial in history.trials)


def _row(trial: Trial, times: _Times, limits: Sequence[Objective], length: int) -> TrialRow:
    card, found = trial.request.card, trial.observation
    assert isinstance(card, Card), "the log holds cards"
    metrics = {} if found is None else dict(found.metrics)
    took = None if times.started is None or times.finished is None else times.finished - times.started
    return TrialRow(
        number=trial.number,
        state=trial.state,
        card=card,
        digest=card.digest,
        metrics=metrics,
        costs={"params": params(card), "macs": macs(card, length)},
        feasible=found is not None and all(limit.meets(metrics.get(limit.name, limit.bound or 0)) for limit in limits),
        seconds=took if found is None else found.spent.seconds,
        parent=trial.request.parent,
        budget=trial.request.budget.steps,
        steps=None if found is None else found.spent.steps,
        reason=trial.reason,
        worker=times.worker,
        started=times.started,
        finished=times.finished,
        elapsed=times.elapsed,
    )


def _times(events: Iterable[Event]) -> dict[int, _Times]:
    times: dict[int, _Times] = {}
    clock = Clock()
    for event in events:
        clock.feed([event])
        if event.number is None:
            continue
        of_trial = times.setdefault(event.number, _Times())
        if event.kind in ("asked", "claimed"):
            of_trial.worker, of_trial.started = event.worker, event.at
        elif event.kind in ("told", "failed"):
            of_trial.worker, of_trial.finished, of_trial.elapsed = event.worker, event.at, clock.elapsed(event.at)
    return times
