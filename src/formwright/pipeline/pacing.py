"""A plan that follows the machine: revised from measured speed before each stage, and while a training runs.

Every revision is written to the plan file before it takes effect. A run that was killed reads it there, and resumes as
if it had never been interrupted. `train_paced` trains for as many steps as the plan says.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from formwright.core.checks import stored_fields
from formwright.core.codec import loads
from formwright.core.errors import IllegalInput
from formwright.core.files import read_regular, write_json
from formwright.core.text import clock
from formwright.pipeline.plan import SLOWED, Done, PacedTraining, Plan, Planned, Speeds, TimeBudget, left, within
from formwright.pipeline.run import PipelineRun, StageRun

if TYPE_CHECKING:
    from torch import nn

    from formwright.train.fit import Run
    from formwright.train.hyperparameters import Hyperparameters
    from formwright.train.loop import State
    from formwright.train.losses import Loss, StepLoss
    from formwright.train.streams import Stream

T = TypeVar("T")
_FIRST_LOOK = 10  # steps after which a training is first looked at; then after twice as many, and so on
_LEAST_CHANGE = 0.1  # of a training's steps, below which a plan stays as it is
_BUSY = 1.3  # times that a step takes longer than on an idle machine, from which on it is reported
PLAN = "plan.json"


@dataclass(frozen=True)
class Revision:
    """Say that from step `since` on, the training of a stage has `steps` steps in all."""

    stage: str
    since: int
    steps: int


@dataclass(frozen=True)
class Schedule:
    """A plan as it stands: the speeds it was made by, the stage it has reached, the seconds before it, the revisions.

    A stage's first revision has `since` 0, and says with how many steps it began.
    """

    plan: Plan
    speeds: Speeds = field(default_factory=dict)
    stage: str = ""
    spent: float = 0.0
    revisions: tuple[Revision, ...] = ()
    hours: float | None = None

    @classmethod
    def read(cls, path: Path) -> "Schedule":
        """Read what `Pacing.write` wrote."""
        try:
            values = stored_fields(cls, loads(read_regular(path)))
            return cls(
                _numbers(values["plan"], int),
                _numbers(values["speeds"], float),
                str(values["stage"]),
                float(values["spent"]),
                tuple(Revision(**stored_fields(Revision, one)) for one in values["revisions"]),
                None if values["hours"] is None else float(values["hours"]),
            )
        except (OSError, ValueError, TypeError, AttributeError) as error:
            detail = str(error).rstrip(".")
            raise IllegalInput(f"cannot read {path}: {detail}; remove it, and the run is planned again") from None


def _numbers(data: Any, kind: Callable[[Any], T]) -> dict[str, dict[str, T]]:
    return {str(stage): {str(name): kind(one) for name, one in some.items()} for stage, some in data.items()}


class Pacing:
    """Keep the schedule of a run up to date in its file; without hours the plan never changes.

    A schedule with hours has speeds. `measured` times the pieces of the work again, `tell` receives one line for each
    revision, `clock` gives seconds.
    """

    def __init__(
        self,
        schedule: Schedule,
        budget: TimeBudget,
        path: Path | None = None,
        measured: Callable[[], Speeds] | None = None,
        tell: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.schedule, self.budget = schedule, budget
        self._path, self._measured, self._tell, self._clock = path, measured, tell, clock
        self._began, self._before, self._resumed = clock(), 0.0, 0

    @property
    def plan(self) -> Plan:
        return self.schedule.plan

    def write(self) -> None:
        if self._path is not None:
            write_json(self._path, asdict(self.schedule))

    def enter(self, stage: str, *, timed_anew: bool = False) -> None:
        """Begin a stage: plan what is left by the speed of the last one, once, and write it before the stage begins.

        With `timed_anew` everything is timed again: trainings say little of how fast models are judged.
        """
        stages = self.budget.stages
        if stage not in stages or stages.index(stage) <= self.budget.place(self.schedule.stage):
            return
        now = self._clock()
        spent, self._began, self._before = self._elapsed(now), now, 0.0
        self.schedule = replace(self.schedule, stage=stage, spent=spent)
        if self.budget.hours is not None:
            if timed_anew and self._measured is not None:
                self.schedule = replace(self.schedule, speeds=self._measured())
            done = Done(stages[: stages.index(stage)], 0, spent)
            self._revise(within(self.budget, self.schedule.speeds, self.plan, done), done)
        self.write()

    def steps(self, stage: str) -> list[Revision]:
        """Give the revisions of a training in their order, the first being its beginning, which is written once."""
        if not self._of(stage):
            began = Revision(stage, 0, self.plan[stage][self.budget.trainings[stage].amount])
            self.schedule = replace(self.schedule, revisions=(*self.schedule.revisions, began))
            self.write()
        return self._of(stage)

    def next_look(self, stage: str, step: int) -> int | None:
        """Give the step after which a training is looked at next; None where it never is again."""
        if self.budget.hours is None:
            return None
        last, look = self._of(stage)[-1], _FIRST_LOOK
        while look <= max(step, last.since):  # what was revised already stays
            look *= 2
        again = self._resumed + _FIRST_LOOK  # the machine may be another one by now
        look = min(look, again) if again > max(step, last.since) else look
        return look if look < last.steps else None

    def resumed(self, step: int, seconds: float) -> None:
        """Record that some steps of a training were done before this process began, and their seconds."""
        self._resumed, self._before = step, seconds

    def look(self, stage: str, step: int, step_seconds: float) -> int | None:
        """Plan again by how long the last steps took; give the training's new number of steps where that changes."""
        training = self.budget.trainings[stage]
        speeds = as_fast(self.schedule.speeds, stage, training, step_seconds)
        self.schedule = replace(self.schedule, speeds=speeds)
        stages = self.budget.stages
        done = Done(stages[: stages.index(stage)], step, self._elapsed(self._clock()))
        plan, before = within(self.budget, speeds, self.plan, done), self.plan[stage][training.amount]
        steps = plan[stage][training.amount]
        if abs(steps - before) <= _LEAST_CHANGE * before:
            return None
        self._revise(plan, done)
        self.schedule = replace(self.schedule, revisions=(*self.schedule.revisions, Revision(stage, step, steps)))
        self.write()
        return steps

    def trained(self) -> None:
        """Record that the training under way is over, so that its time is not forgotten."""
        now = self._clock()
        self.schedule = replace(self.schedule, spent=self._elapsed(now))
        self._began, self._before = now, 0.0
        self.write()

    def _of(self, stage: str) -> list[Revision]:
        return [one for one in self.schedule.revisions if one.stage == stage]

    def _elapsed(self, now: float) -> float:
        return self.schedule.spent + self._before + now - self._began

    def _revise(self, plan: Plan, done: Done) -> None:
        changes = [
            f"{one.what or f'{stage} {name}'} {self.plan[stage][name]:,} -> {plan[stage][name]:,}"
            for stage, some in self.budget.amounts.items()
            for name, one in some.items()
            if self.plan[stage][name] != plan[stage][name]
        ]
        self.schedule = replace(self.schedule, plan=plan)
        if changes:
            rest = sum(left(plan, self.schedule.speeds, self.budget, done).values())
            total, hours = (done.seconds + rest) / 3600, self.budget.hours or 0.0
            over = f", longer than the {hours:g} asked for" if total > hours else ""
            self._tell(f"plan revised from measured speed: {', '.join(changes)}; about {total:.2g} hours in all{over}")


def as_fast(speeds: Speeds, stage: str, training: PacedTraining, step_seconds: float) -> Speeds:
    """Give the speeds of a machine on which a training's step takes so long: all else is as much faster or slower."""
    ratio = step_seconds / speeds[stage][training.speed]
    found: dict[str, dict[str, float]] = {
        name: {key: max(1.0, ratio * one) if key == SLOWED else ratio * one for key, one in some.items()}
        for name, some in speeds.items()
    }
    found[stage] |= dict.fromkeys(training.included, 0.0)
    return found


Recipes = Sequence[tuple[int, "Hyperparameters"]]  # each with the step from which on it holds


def train_paced(
    run: StageRun,
    what: str,
    model: "nn.Module",
    stream: "Stream",
    loss: "Loss | StepLoss",
    recipe: "Callable[[int], Hyperparameters]",
    steps: int,
) -> None:
    """Train a model in place for `steps` steps, or for as many as the plan of the run says, and resume exactly.

    `recipe` gives the recipe of a training with a total number of steps: the schedule of the learning rate follows a
    plan that changes on the way.
    """
    name, state = run.name, None
    pacing = run.run.pacing or _unplanned(name, steps)
    while state is None or len(state.losses) < pacing.steps(name)[-1].steps:
        recipes = _recipes(pacing.steps(name), recipe)
        with run.training(what, recipes[-1][1].steps) as training:
            if state is None:
                state = _state(model, recipes, training)
                if len(state.losses) == recipes[-1][1].steps:
                    return  # and its time was noted when it ended
                pacing.resumed(len(state.losses), state.seconds)
            _until_revised(name, state, recipes, stream, loss, training, pacing)
    pacing.trained()


def schedule_share(run: StageRun, step: int) -> float | None:
    """Give the share of a training's schedule that has passed before a step; None before its plan first changes.

    Like the learning rate, it follows from the revisions up to that step: what was left of the schedule when the plan
    changed is spread over the steps that were left then.
    """
    from formwright.train.hyperparameters import Hyperparameters

    revisions = [] if run.run.pacing is None else [one for one in run.run.pacing.steps(run.name) if one.since <= step]
    return _recipes(revisions, Hyperparameters)[-1][1].share(step) if len(revisions) > 1 else None


def _unplanned(stage: str, steps: int) -> Pacing:
    """Pace a training in a run without a plan: it has the steps that its stage says."""
    budget = TimeBudget(None, {}, lambda *_: {}, {stage: PacedTraining()})
    return Pacing(Schedule({stage: {PacedTraining.amount: steps}}), budget)


def _until_revised(
    name: str,
    state: "State",
    recipes: Recipes,
    stream: "Stream",
    loss: "Loss | StepLoss",
    training: "Run",
    pacing: Pacing,
) -> None:
    """Train on to the next step at which the number of steps changes, or to the end."""
    from formwright.train.loop import go_on

    done = len(state.losses)
    state.recipe = [one for since, one in recipes if since <= done][-1]
    later = next((since for since, _ in recipes if since > done), None)
    if later is not None:  # a change that was made before the run was interrupted
        go_on(state, stream, loss, training.saving, training.after_step, until=later)
        return
    while len(state.losses) < state.recipe.steps:
        done, before = len(state.losses), state.seconds
        go_on(state, stream, loss, training.saving, training.after_step, until=pacing.next_look(name, done))
        step = len(state.losses)
        if step < state.recipe.steps and pacing.look(name, step, (state.seconds - before) / (step - done)) is not None:
            return


def _recipes(
    revisions: Sequence[Revision], recipe: "Callable[[int], Hyperparameters]"
) -> "list[tuple[int, Hyperparameters]]":
    """Give the recipes of a training, each with the step from which on it holds."""
    from formwright.train.hyperparameters import replanned

    found = [(0, recipe(revisions[0].steps))]
    for one in revisions[1:]:
        rate = recipe(one.steps).learning_rate
        found.append((one.since, replanned(found[-1][1], one.since, one.steps, rate)))
    return found


def _state(model: "nn.Module", recipes: Recipes, training: "Run") -> "State":
    """Begin, or restore the newest checkpoint: it was written under the recipe of the step before it."""
    from formwright.train import checkpoint
    from formwright.train.loop import begin

    found = None if training.saving is None else checkpoint.newest(training.saving.folder)
    done = 0 if found is None else found.step
    return begin(model, [one for since, one in recipes if since < max(done, 1)][-1], training.saving)


def begin_pacing(run: PipelineRun) -> Pacing | None:
    """Give the plan of a run: the one in its folder, or a new one, which is reported; None without planned stages."""
    budget, path = budget_of(run), run.out / PLAN
    if not budget.amounts:
        return None
    is_kept = path.is_file() and not run.force
    if is_kept:
        schedule = _resumed(Schedule.read(path), budget)
    else:
        run.display.tell("timing a few steps on this machine")
        speeds = measured_speeds(run)
        plan = budget.usual if budget.hours is None else within(budget, speeds)
        schedule = Schedule(plan, speeds, hours=budget.hours)
    pacing = Pacing(schedule, budget, path, lambda: measured_speeds(run), run.display.tell)
    for line in [] if is_kept else _table(run, pacing):
        run.display.tell(line)
    return pacing


def _resumed(schedule: Schedule, budget: TimeBudget) -> Schedule:
    """Give a stored schedule for what the run is asked for now, which may be other hours than before."""
    names = {stage: sorted(some) for stage, some in schedule.plan.items()}
    if names != {stage: sorted(some) for stage, some in budget.amounts.items()}:
        raise IllegalInput(
            "plan.json in the folder of this run has other stages: remove it, and the run is planned again"
        )
    if budget.hours is None:
        return replace(schedule, plan=budget.usual, hours=None)
    if budget.hours == schedule.hours:
        return schedule
    done = Done(budget.stages[: budget.place(schedule.stage)], 0, schedule.spent)
    return replace(schedule, plan=within(budget, schedule.speeds, schedule.plan, done), hours=budget.hours)


def _planned(run: PipelineRun) -> dict[str, tuple[Planned, StageRun]]:
    found: dict[str, tuple[Planned, StageRun]] = {}
    for name, stage in run.pipeline.named.items():
        if isinstance(stage, Planned) and stage.amounts(here := StageRun(run, stage, name)) is not None:
            found[name] = stage, here
    return found


def budget_of(run: PipelineRun) -> TimeBudget:
    """Gather what the stages of a run say of the time that they take."""
    stages = _planned(run)

    def estimate(plan: Plan, speeds: Speeds) -> dict[str, float]:
        return {name: stage.seconds(plan[name], speeds[name], here) for name, (stage, here) in stages.items()}

    amounts = {name: stage.amounts(here) or {} for name, (stage, here) in stages.items()}
    trainings = {name: stage.TRAINING for name, (stage, _) in stages.items() if stage.TRAINING is not None}
    return TimeBudget(run.options.hours, amounts, estimate, trainings)


def measured_speeds(run: PipelineRun) -> Speeds:
    """Time the pieces of all planned stages."""
    run.timings.clear()
    return {name: stage.speeds(here) for name, (stage, here) in _planned(run).items()}


@dataclass(frozen=True)
class PlanRow:
    """One line of a plan: a stage, what it does, and how long that takes; None where nobody knows before."""

    stage: str
    what: str = ""
    seconds: float | None = None


def describe_plan(run: PipelineRun, pacing: Pacing | None) -> list[PlanRow]:
    """List the stages of a run with what they do and how long that takes."""
    if pacing is None:
        return [PlanRow(name) for name in run.pipeline.named]
    seconds, rows = pacing.budget.estimate(pacing.plan, pacing.schedule.speeds), dict[str, PlanRow]()
    for name, (stage, here) in _planned(run).items():
        rows[name] = PlanRow(name, stage.describe(pacing.plan[name], here), seconds[name])
    return [rows.get(name, PlanRow(name)) for name in run.pipeline.named]


def _table(run: PipelineRun, pacing: Pacing) -> list[str]:
    """Write a plan as lines of text, with what there is to say of too little time and of a busy machine."""
    rows = [row for row in describe_plan(run, pacing) if row.seconds is not None]
    total, hours = sum(row.seconds or 0.0 for row in rows), pacing.budget.hours
    rows.append(PlanRow("in all", "", total))
    names, width = max(len(row.stage) for row in rows), max(len(row.what) for row in rows)
    lines = [f"  {row.stage:<{names}}  {row.what:<{width}}  about {clock(row.seconds or 0.0)}" for row in rows]
    if hours is not None and total > 3600 * hours:
        short = f"{hours:g} hours are too few at this speed: the minimum is planned, which takes about"
        lines.append(f"{short} {total / 3600:.2g} hours; more is done where the machine turns out to be faster")
    slowed = max((one.get(SLOWED, 1.0) for one in pacing.schedule.speeds.values()), default=1.0)
    if slowed > _BUSY:
        lines.append(f"the machine is busy: alone on it, all that takes about {clock(total / slowed)}")
    return lines
