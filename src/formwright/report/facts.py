"""Everything that the page of a study tells, read from its log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from formwright.core.records import History, Objective, Trial
from formwright.pipeline.conclusion import Comparison
from formwright.pipeline.delivered import Sitting, last_sitting
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
from formwright.report.importance import ChoiceImportance, importance
from formwright.report.panels import Contributions, UsedPart, contributions, parts_in
from formwright.report.predictions import Predictions, predictions
from formwright.report.run_facts import DONE, RunFacts, stage_facts
from formwright.report.space_map import SpaceMap, space_map
from formwright.report.trial_rows import Progress, TrialRow, progress, trial_rows
from formwright.search.scores import best_of, front, goals_of, longest
from formwright.space.space import Space
from formwright.study.events import Event, noted_warnings
from formwright.study.ledger import Clock, Ledger
from formwright.study.replay import Replay
from formwright.study.store import Log
from formwright.study.study import searched


@dataclass(frozen=True)
class StudyFacts:
    """A study as of its last event. `best` and `front` are trial numbers; `over` says why it stopped, if it did."""

    name: str
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
    sitting: Sitting | None = None
    data_warnings: tuple[str, ...] = ()

    @property
    def task(self) -> str:
        """Name the task; empty if there is none."""
        task = self.config.get("task")
        name = task.get("name") if isinstance(task, Mapping) else task
        return "" if name is None else str(name)

    @property
    def goals(self) -> tuple[Objective, ...]:
        """Return the objectives to optimise; the first one is the score."""
        return goals_of(self.objectives)

    @property
    def limits(self) -> tuple[Objective, ...]:
        """Return the objectives that are constraints."""
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
    events, replay = log.read(), Replay(space)
    replay.feed(events)
    config, used = searched(log.config), parts_in(log.config, at_hand)
    objectives = tuple(map(Objective.parse, [*config["objectives"], *config.get("limits", [])]))
    goal, limits = goals_of(objectives)[0], [objective for objective in objectives if objective.bound is not None]
    rows = trial_rows(replay.history, events, limits, _length(config))
    failed, ranked = undeliverable(events), best_of(replay.history, objectives)
    ordered = [trial for trial in ranked if trial.request.card.digest not in failed] or ranked
    models = final_models(events)
    compressed = with_measured_teacher(compression(events), models)
    targets = asked_targets(config, replay.history, events, models)
    ordered = _chosen_first(ordered, targets)
    wanted = _wanted(ordered, objectives, config) | {one.digest for one in targets if one.digest is not None}
    leading, steps = front(replay.history, objectives), progress(_comparable(rows, replay.history), goal)
    marked = {trial.number for trial in (*ordered[:1], *leading)} | {int(number) for number, _ in steps.by_number}
    finished = replay.history.finished
    return StudyFacts(
        name=log.name,
        run=_run(log, events, used, folder),
        config=_extended(config, events),
        contributed=contributions(used),
        objectives=objectives,
        trials=rows,
        best=ordered[0].number if ordered else None,
        front=tuple(trial.number for trial in leading),
        ledger=replay.ledger(_elapsed(events)),
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
        sitting=last_sitting(events),
        data_warnings=tuple(str(warning["message"]) for warning in noted_warnings(events)),
    )


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


def _chosen_first(ordered: Sequence[Trial], targets: Sequence[AskedTarget]) -> list[Trial]:
    """Put the designs chosen for targets first, in the order of the targets."""
    digests = [one.digest for one in targets if one.digest is not None]
    places = {digest: place for place, digest in reversed(list(enumerate(digests)))}
    return sorted(ordered, key=lambda trial: places.get(trial.request.card.digest, len(places)))


def _comparable(rows: Sequence[TrialRow], history: History) -> list[TrialRow]:
    """Keep the trials with the largest budget: scores after fewer steps are not comparable."""
    numbers = {trial.number for trial in longest(history.finished)}
    return [row for row in rows if row.number in numbers]


def _wanted(ordered: Sequence[Trial], objectives: Sequence[Objective], config: Mapping[str, Any]) -> set[str]:
    """Return the digests of the designs that the study would deliver now: the best ones, or any of the front."""
    most = len(ordered) if len(goals_of(objectives)) > 1 else int(config.get("keep", 1))
    return {trial.request.card.digest for trial in ordered[:most]}


def _extended(config: Mapping[str, Any], events: Sequence[Event]) -> Mapping[str, Any]:
    """Return the configuration with the stopping rule of the last run."""
    wishes = [event.data["stop"] for event in events if event.kind == "started" and "stop" in event.data]
    return {**config, "stop": {**config.get("stop", {}), **wishes[-1]}} if wishes else config


def _elapsed(events: Sequence[Event]) -> float:
    clock = Clock()
    clock.feed(events)
    return clock.elapsed(clock.last)


def _over(events: Sequence[Event]) -> str:
    """Return why the study stopped; empty while it runs or after it was resumed."""
    for event in reversed(events):
        if event.kind == "stopped":
            return str(event.data.get("reason") or "stopped")
        if event.kind in ("started", "asked", "claimed"):
            return ""
    return ""


def _length(config: Mapping[str, Any]) -> int:
    """Return the number of tokens of a row."""
    training = config.get("training")
    length = training.get("length") if isinstance(training, Mapping) else None
    return length if isinstance(length, int) and length > 0 else 128
