"""Everything that the page of a study tells, read from its log."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from formwright.arch.card import Card
from formwright.core.protocols import CardLike
from formwright.core.records import History, Objective, State, Trial
from formwright.cost import macs, params
from formwright.pipeline.conclusion import Comparison
from formwright.pipeline.delivered import MeasurementSession, last_session
from formwright.pipeline.run_folder import DONE
from formwright.report.choice_importance import ChoiceImportance, importance
from formwright.report.compression import (
    AskedTarget,
    CompressionFacts,
    asked_targets,
    compression,
    with_measured_teacher,
    with_teacher,
)
from formwright.report.final_models import (
    REFERENCE_ROLES,
    FinalModel,
    command_lines,
    comparisons_in,
    final_models,
    mark_earlier,
    undeliverable,
)
from formwright.report.formula_statistics import FormulaStatistics, formula_statistics
from formwright.report.panels import Contributions, RunFacts, UsedPart, contributions, parts_in, stage_facts
from formwright.report.predictions import Predictions, predictions
from formwright.report.space_map import SpaceMap, space_map
from formwright.search.scores import best_of, front, goals_of, longest
from formwright.space.space import Space
from formwright.study.events import Event, noted_warnings
from formwright.study.replay import Replay
from formwright.study.stop import Clock, Ledger
from formwright.study.store import Log
from formwright.study.study import searched

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
    worker: str = ""
    started: float | None = None
    finished: float | None = None
    elapsed: float | None = None

    @property
    def values(self) -> dict[str, float]:
        """Return every number that can be plotted; a metric overrides a cost of the same name."""
        return {**self.costs, **self.metrics}


def trial_rows(
    history: History, events: Sequence[Event], limits: Sequence[Objective], length: int
) -> tuple[TrialRow, ...]:
    """Make one row for each trial; MACs are counted for `length` tokens."""
    times, clock = defaultdict[int | None, dict[str, Any]](dict), Clock()
    for event in events:
        clock.feed([event])
        if event.kind in ("asked", "claimed"):
            times[event.number] |= {"worker": event.worker, "started": event.at}
        elif event.kind in ("told", "failed"):
            ended = {"finished": event.at, "elapsed": clock.elapsed(event.at)}
            times[event.number] |= {"worker": event.worker, **ended}
    return tuple(_row(trial, times[trial.number], limits, length) for trial in history.trials)


def _row(trial: Trial, times: Mapping[str, Any], limits: Sequence[Objective], length: int) -> TrialRow:
    card, found = trial.request.card, trial.observation
    metrics = {} if found is None else dict(found.metrics)
    took = times["finished"] - times["started"] if {"started", "finished"} <= times.keys() else None
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
        **times,
    )


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


@dataclass(frozen=True)
class StudyFacts:
    """A study as of its last event; `search` is the name of its stage.

    `best` and `front` are trial numbers; `over` says why it stopped, if it did.
    """

    name: str
    search: str
    run: RunFacts
    config: Mapping[str, Any] = field(hash=False)
    contributed: Contributions
    objectives: tuple[Objective, ...]
    trials: tuple[TrialRow, ...]
    best: int | None
    front: tuple[int, ...]
    ledger: Ledger
    progress: Progress
    importance: ChoiceImportance
    space_map: SpaceMap
    predictions: Predictions
    models: tuple[FinalModel, ...]
    over: str
    compression: CompressionFacts | None = None
    formulas: FormulaStatistics | None = None
    targets: tuple[AskedTarget, ...] = ()
    comparisons: Mapping[str, Comparison] = field(default_factory=dict, hash=False)
    length: int = 128
    session: MeasurementSession | None = None
    data_warnings: tuple[str, ...] = ()

    @property
    def task(self) -> str:
        """Name the task, files and folders of the user without their place; empty if there is none."""
        task = self.config.get("task")
        name = str((task.get("name") if isinstance(task, Mapping) else task) or "")
        return Path(name).name if Path(name).is_absolute() else name

    @property
    def goals(self) -> tuple[Objective, ...]:
        """Return the objectives to optimise; the first one is the score."""
        return goals_of(self.objectives)

    @property
    def limits(self) -> tuple[Objective, ...]:
        return tuple(objective for objective in self.objectives if objective.bound is not None)

    @property
    def best_row(self) -> TrialRow | None:
        return next((row for row in self.trials if row.number == self.best), None)

    @property
    def baseline(self) -> FinalModel | None:
        """Return the hand-made model to compare with, if any."""
        return next((model for model in self.models if model.role == "baseline"), None)

    @property
    def teacher(self) -> FinalModel | None:
        """Return the model that is being compressed, if any."""
        return next((model for model in self.models if model.role == "teacher"), None)

    @property
    def found(self) -> FinalModel | None:
        """Return the final model of the best design, if it has been trained."""
        digest = None if self.best_row is None else self.best_row.digest
        return next(
            (model for model in self.models if model.role in ("best", "front") and model.digest == digest), None
        )


# why figures are left out that need the space
SPACE_NOT_LOADED = (
    "The space is Python code, which `formwright report` does not run. The page that the search itself writes when it "
    "ends or is resumed has this figure."
)


def study_facts(
    log: Log, space: Space | None, folder: Path | None = None, at_hand: Mapping[str, Any] | None = None
) -> StudyFacts:
    """Read a finished or running study from its log; without a space, figures that need it are left out.

    `folder` is that of the run, where stages record that they are done; `at_hand` are classes that a program gave.
    """
    events, clock = log.read(), Clock()
    replay = Replay.of(events, space)
    clock.feed(events)
    config, used = searched(log.config), parts_in(log.config, at_hand)
    objectives = tuple(map(Objective.parse, [*config["objectives"], *config.get("limits", [])]))
    goal, limits = goals_of(objectives)[0], [objective for objective in objectives if objective.bound is not None]
    rows = trial_rows(replay.history, events, limits, _length(config))
    models = final_models(events)
    compressed = with_measured_teacher(compression(events), models)
    targets = asked_targets(config, replay.history, events, models)
    chosen = list(dict.fromkeys(one.digest for one in targets if one.digest is not None))
    ordered, leading = _deliverable(replay.history, events, objectives, chosen), front(replay.history, objectives)
    # what the study would deliver now: the best ones, or any of the front
    most = len(ordered) if len(goals_of(objectives)) > 1 else int(config.get("keep", 1))
    wanted = {trial.request.card.digest for trial in ordered[:most]} | set(chosen)
    finished = replay.history.finished
    comparable = {trial.number for trial in longest(finished)}  # fewer steps, other scores
    steps = progress([row for row in rows if row.number in comparable], goal)
    marked = {trial.number for trial in (*ordered[:1], *leading)} | {int(number) for number, _ in steps.by_number}
    stops = [event.data["stop"] for event in events if event.kind == "started" and "stop" in event.data]
    return StudyFacts(
        name=log.name,
        search=str(log.config.get("stage", "search")),
        run=_run(log, events, used, folder),
        config={**config, "stop": {**config.get("stop", {}), **stops[-1]}} if stops else config,
        contributed=contributions(used),
        objectives=objectives,
        trials=rows,
        best=ordered[0].number if ordered else None,
        front=tuple(trial.number for trial in leading),
        ledger=replay.ledger(clock.elapsed(clock.last)),
        progress=steps,
        importance=importance(space, finished, goal) if space else ChoiceImportance(hidden=SPACE_NOT_LOADED),
        space_map=space_map(space, replay.history.trials, marked) if space else SpaceMap(hidden=SPACE_NOT_LOADED),
        predictions=predictions(space, finished, objectives) if space else Predictions(hidden=SPACE_NOT_LOADED),
        models=with_teacher(mark_earlier(models, wanted), compressed),
        over=_over(events),
        compression=compressed,
        formulas=formula_statistics(space, finished, objectives, config, used) if space else None,
        targets=targets,
        comparisons=comparisons_in(events),
        length=_length(config),
        session=last_session(events),
        data_warnings=tuple(str(warning["message"]) for warning in noted_warnings(events)),
    )


def _deliverable(
    history: History, events: Sequence[Event], objectives: Sequence[Objective], chosen: Sequence[str]
) -> list[Trial]:
    """List the trials from the best on, without those that could not be delivered; those of targets come first."""
    failed, ranked = undeliverable(events), best_of(history, objectives)
    found = [trial for trial in ranked if trial.request.card.digest not in failed] or ranked
    places = {digest: place for place, digest in enumerate(chosen)}
    return sorted(found, key=lambda trial: places.get(trial.request.card.digest, len(places)))


def _run(log: Log, events: Sequence[Event], used: Sequence[UsedPart], folder: Path | None) -> RunFacts:
    """Tell how far the run is.

    What stands before a search is done when that begins; other stages have a record, or deliver models from it.
    """
    own, over = str(log.config.get("stage")), bool(_over(events))
    names = list(dict.fromkeys(part.stage for part in used))
    done = set(names[: names.index(own)] if events and own in names else [])
    done |= {name for name in names if folder is not None and (folder / name / DONE).is_file()}
    if over:
        delivered = any(model.role not in REFERENCE_ROLES for model in final_models(events))
        done |= {own, *(part.stage for part in used if delivered and own in part.inputs)}
    stages = stage_facts(log.config, used, done)
    return RunFacts(log.name, log.config, stages, command_lines(events), events[-1].at if events else None, over)


def _over(events: Sequence[Event]) -> str:
    """Return why the study stopped; empty while it runs or after it was resumed."""
    last = [event for event in events if event.kind in ("stopped", "started", "asked", "claimed")][-1:]
    return "".join(str(event.data.get("reason") or "stopped") for event in last if event.kind == "stopped")


def _length(config: Mapping[str, Any]) -> int:
    """Return the number of tokens of a row."""
    training = config.get("training")
    length = training.get("length") if isinstance(training, Mapping) else None
    return length if isinstance(length, int) and length > 0 else 128
