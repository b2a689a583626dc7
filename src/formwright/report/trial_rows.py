"""Trials as rows of a table (log entries and counted costs), and the best score over time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from formwright.arch.card import Card
from formwright.core.protocols import CardLike
from formwright.core.records import History, Objective, State, Trial
from formwright.cost import macs, params
from formwright.study.events import Event
from formwright.study.ledger import Clock

Corner = tuple[float, float]


@dataclass(frozen=True)
class TrialRow:
    """One trial. `started` and `finished` are seconds since 1970; `elapsed` is how long the study had run by its end.

    `budget` is the number of training steps that was asked for, None for a whole training; `steps` those that it took.
    """

    number: int
    state: State
    card: Card | CardLike
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
        """Return every number that can be plotted; a metric overrides a cost of the same name."""
        return {**self.costs, **self.metrics}


@dataclass
class _Times:
    """Start and end of a trial, and its last worker."""

    worker: str = ""
    started: float | None = None
    finished: float | None = None
    elapsed: float | None = None


def trial_rows(
    history: History, events: Sequence[Event], limits: Sequence[Objective], length: int
) -> tuple[TrialRow, ...]:
    """Make one row for each trial; MACs are counted for `length` tokens."""
    times = _times(events)
    return tuple(_row(trial, times.get(trial.number, _Times()), limits, length) for trial in history.trials)


def _row(trial: Trial, times: _Times, limits: Sequence[Objective], length: int) -> TrialRow:
    card, found = trial.request.card, trial.observation
    metrics = {} if found is None else dict(found.metrics)
    took = None if times.started is None or times.finished is None else times.finished - times.started
    return TrialRow(
        number=trial.number,
        state=trial.state,
        card=card,
        digest=card.digest,
        metrics=metrics,
        costs={"params": params(card), "macs": macs(card, length)} if isinstance(card, Card) else {},
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


@dataclass(frozen=True)
class Progress:
    """The best score so far, over trials and over seconds: the points where it changes, and the end."""

    by_number: tuple[Corner, ...] = ()
    by_seconds: tuple[Corner, ...] = ()


def progress(rows: Sequence[TrialRow], goal: Objective) -> Progress:
    """Compute the best score so far of feasible trials; all of them must have the same budget."""
    scored = [row for row in rows if row.feasible and goal.name in row.metrics]
    timed = sorted((row for row in scored if row.elapsed is not None), key=lambda row: row.elapsed or 0.0)
    return Progress(
        _corners(((row.number, row.metrics[goal.name]) for row in scored), goal),
        _corners(((row.elapsed or 0.0, row.metrics[goal.name]) for row in timed), goal),
    )


def _corners(points: Iterable[Corner], goal: Objective) -> tuple[Corner, ...]:
    sign = 1.0 if goal.direction == "max" else -1.0
    corners: list[Corner] = []
    last = 0.0
    for place, value in points:
        if not corners or sign * value > sign * corners[-1][1]:
            corners.append((place, value))
        last = place
    return (*corners, (last, corners[-1][1])) if corners and last > corners[-1][0] else tuple(corners)
