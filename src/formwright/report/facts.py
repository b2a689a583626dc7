"""Everything that the page of a study tells, read from its log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from formwright import __version__
from formwright.core.records import History, Objective, Trial
from formwright.report.compression import Compression, as_measured, compression, with_teacher
from formwright.report.importance import Importance, importance
from formwright.report.invention import Invention, invention
from formwright.report.models import FinalModel, commands, comparisons_in, final_models, told_apart, undeliverable
from formwright.report.predictions import Predictions, predictions
from formwright.report.progress import Progress, progress
from formwright.report.rows import TrialRow, trial_rows
from formwright.report.space_map import SpaceMap, space_map
from formwright.report.targets import AskedTarget, asked_targets
from formwright.search.fronts import best_of, front, longest
from formwright.search.scores import goals_of
from formwright.space.space import Space
from formwright.study.conclusion import Comparison
from formwright.study.events import Event, noted_warnings
from formwright.study.ledger import Clock, Ledger
from formwright.study.replay import Replay
from formwright.study.sitting import Sitting, last_sitting
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
    space_map: SpaceMap
    predictions: Predictions
    models: tuple[FinalModel, ...]
    command: str
    over: str
    as_of: float | None
    compression: Compression | None = None
    invention: Invention | None = None
    targets: tuple[AskedTarget, ...] = ()
    comparisons: Mapping[str, Comparison] = field(default_factory=dict, hash=False)
    length: int = 128
    sitting: Sitting | None = None
    data_warnings: tuple[str, ...] = ()
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
    def teacher(self) -> FinalModel | None:
        """Give the model that the designs are smaller versions of, if there is one."""
        return next((model for model in self.models if model.role == "teacher"), None)

    @property
    def found(self) -> FinalModel | None:
        """Give the final model of the best design, if it has been trained already."""
        digest = None if self.best_row is None else self.best_row.digest
        return next(
            (model for model in self.models if model.role in ("best", "front") and model.digest == digest), None
        )


# why figures are left out that need the space
CLOSED = (
    "The space is a Python file, which `formwright report` does not run. The page that `formwright search` or "
    "`formwright resume` writes when it ends has this figure."
)


def study_facts(log: Log, space: Space | None) -> StudyFacts:
    """Read the facts of a study, finished or still running, from its log; without a space, what its cards tell."""
    events, replay = log.read(), Replay(space)
    replay.feed(events)
    objectives = tuple(map(Objective.parse, [*log.config["objectives"], *log.config.get("limits", [])]))
    goal, limits = goals_of(objectives)[0], [objective for objective in objectives if objective.bound is not None]
    rows = trial_rows(replay.history, events, limits, _length(log.config))
    failed, ranked = undeliverable(events), best_of(replay.history, objectives)
    ordered = [trial for trial in ranked if trial.request.card.digest not in failed] or ranked
    models = final_models(events)
    compressed = as_measured(compression(events), models)
    targets = asked_targets(log.config, replay.history, events, models)
    ordered = _chosen_first(ordered, targets)
    wanted = _wanted(ordered, objectives, log.config) | {one.digest for one in targets if one.digest is not None}
    leading, steps = front(replay.history, objectives), progress(_comparable(rows, replay.history), goal)
    marked = {trial.number for trial in (*ordered[:1], *leading)} | {int(number) for number, _ in steps.by_number}
    return StudyFacts(
        name=log.name,
        config=_extended(log.config, events),
        objectives=objectives,
        trials=rows,
        best=ordered[0].number if ordered else None,
        front=tuple(trial.number for trial in leading),
        ledger=replay.ledger(_elapsed(events)),
        progress=steps,
        importance=importance(space, replay.history.finished, goal) if space else Importance(hidden=CLOSED),
        space_map=space_map(space, replay.history.trials, marked) if space else SpaceMap(hidden=CLOSED),
        predictions=predictions(space, replay.history.finished, objectives) if space else Predictions(hidden=CLOSED),
        models=with_teacher(told_apart(models, wanted), compressed),
        command=commands(events),
        over=_over(events),
        as_of=events[-1].at if events else None,
        compression=compressed,
        invention=invention(space, replay.history.finished, objectives, log.config) if space else None,
        targets=targets,
        comparisons=comparisons_in(events),
        length=_length(log.config),
        sitting=last_sitting(events),
        data_warnings=tuple(str(warning["message"]) for warning in noted_warnings(events)),
    )


def _chosen_first(ordered: Sequence[Trial], targets: Sequence[AskedTarget]) -> list[Trial]:
    """Put the designs that were chosen for targets before all others, in the order of the targets."""
    digests = [one.digest for one in targets if one.digest is not None]
    places = {digest: place for place, digest in reversed(list(enumerate(digests)))}
    return sorted(ordered, key=lambda trial: places.get(trial.request.card.digest, len(places)))


def _comparable(rows: Sequence[TrialRow], history: History) -> list[TrialRow]:
    """Leave out the trials with less than the largest budget: a score after few steps says little beside theirs."""
    numbers = {trial.number for trial in longest(history.finished)}
    return [row for row in rows if row.number in numbers]


def _wanted(ordered: Sequence[Trial], objectives: Sequence[Objective], config: Mapping[str, Any]) -> set[str]:
    """Give the digests of the designs that the study would deliver now: the best ones, or any of the front."""
    most = len(ordered) if len(goals_of(objectives)) > 1 else int(config.get("keep", 1))
    return {trial.request.card.digest for trial in ordered[:most]}


def _extended(config: Mapping[str, Any], events: Sequence[Event]) -> Mapping[str, Any]:
    """Give the configuration with the end that the last run of the study was told to go to."""
    wishes = [event.data["stop"] for event in events if event.kind == "started" and "stop" in event.data]
    return {**config, "stop": {**config.get("stop", {}), **wishes[-1]}} if wishes else config


def _elapsed(events: Sequence[Event]) -> float:
    clock = Clock()
    clock.feed(events)
    return clock.elapsed(clock.last)


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
