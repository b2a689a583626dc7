"""Everything that the page of a study tells, read from its log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from formwright import __version__
from formwright.core.records import Objective
from formwright.report.importance import Importance, importance
from formwright.report.models import FinalModel, final_models, last_command
from formwright.report.progress import Progress, progress
from formwright.report.rows import TrialRow, trial_rows
from formwright.search.fronts import front
from formwright.search.scores import goals_of
from formwright.space.space import Space
from formwright.study.events import Event
from formwright.study.ledger import Clock, Ledger, ledger_of
from formwright.study.replay import Replay
from formwright.study.store import Log


@dataclass(frozen=True)
class StudyFacts:
    """A study as of its last event. `best` and `front` are numbers of trials; `over` says why it stopped, if it did."""

    name: str
    config: Mapping[str, Any] = field(hash=False)
    objectives: tuple[Objective, ...]
    trials: tuple[TrialRow, ...]
    best: int | None
    front: tuple[int, ...]
    ledger: Ledger
    progress: Progress
    importance: Importance
    models: tuple[FinalModel, ...]
    command: str
    over: str
    as_of: float | None
    version: str = __version__

    @property
    def goals(self) -> tuple[Objective, ...]:
        """Give the objectives to improve; the first one is called the score."""
        return goals_of(self.objectives)

    @property
    def limits(self) -> tuple[Objective, ...]:
        """Give the objectives that only have to be kept."""
        return tuple(objective for objective in self.objectives if objective.bound is not None)

    @property
    def best_row(self) -> TrialRow | None:
        """Give the row of the best trial."""
        return next((row for row in self.trials if row.number == self.best), None)

    @property
    def baseline(self) -> FinalModel | None:
        """Give the hand-made model that the study compares with, if there is one."""
        return next((model for model in self.models if model.role == "baseline"), None)

    @property
    def found(self) -> FinalModel | None:
        """Give the final model of the best design, if it has been trained already."""
        return next((model for model in self.models if model.role == "best"), None)


def study_facts(log: Log, space: Space) -> StudyFacts:
    """Read the facts of a study, finished or still running, from its log."""
    events, replay = log.read(), Replay(space)
    replay.feed(events)
    objectives = tuple(map(Objective.parse, [*log.config["objectives"], *log.config.get("limits", [])]))
    goal, limits = goals_of(objectives)[0], [objective for objective in objectives if objective.bound is not None]
    rows = trial_rows(replay.history, events, limits, _length(log.config))
    kept = [trial.number for trial in front(replay.history, objectives)]
    return StudyFacts(
        name=log.name,
        config=log.config,
        objectives=objectives,
        trials=rows,
        best=_best([row for row in rows if row.number in set(kept)], goal),
        front=tuple(kept),
        ledger=ledger_of(replay.history, _elapsed(events)),
        progress=progress(rows, goal),
        importance=importance(space, replay.history.finished, goal),
        models=final_models(events),
        command=last_command(events),
        over=_over(events),
        as_of=events[-1].at if events else None,
    )


def _best(front_rows: Sequence[TrialRow], goal: Objective) -> int | None:
    """Choose the trial of the front with the best score; the first of equals."""
    if not front_rows:
        return None
    scores = np.array([row.metrics[goal.name] for row in front_rows])
    return front_rows[int(scores.argmax() if goal.direction == "max" else scores.argmin())].number


def _elapsed(events: Sequence[Event]) -> float:
    if not events:
        return 0.0
    clock = Clock(began=events[0].at, last=events[0].at)
    clock.feed(events)
    return clock.elapsed(events[-1].at)


def _over(events: Sequence[Event]) -> str:
    """Say why the study stopped; empty while it runs, also when it was taken up again."""
    for event in reversed(events):
        if event.kind == "stopped":
            return str(event.data.get("reason") or "stopped")
        if event.kind in ("started", "asked", "claimed"):
            return ""
    return ""


def _length(config: Mapping[str, Any]) -> int:
    """Find how many tokens a sentence of the study has."""
    training = config.get("training")
    length = training.get("length") if isinstance(training, Mapping) else None
    return length if isinstance(length, int) and length > 0 else 128
