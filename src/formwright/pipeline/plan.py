"""How long the stages of a run take, and how a budget of time is divided among them.

A stage that can be planned says how much it usually does, and the least and the most that is worth doing; which pieces
of its work were timed on this machine; and how many seconds that makes. The plan scales all stages alike.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

Plan = Mapping[str, Mapping[str, int]]  # how much is done, by stage and by the name of an amount
Speeds = Mapping[str, Mapping[str, float]]  # seconds of the pieces of work, by stage and by name
SLOWED = "slowed"  # among the speeds of a stage: how many times slower the machine is than when it is idle
WRITING = 12.0  # seconds: measuring, exporting and writing a model hardly depend on its size
LOOKS = 2  # at a model that is delivered: on validation, and on as many test rows
KEPT_BACK = 0.1  # of a budget, for what cannot be planned
_HALVINGS = 50  # of the interval in which the scale of a plan is looked for


@dataclass(frozen=True)
class WorkAmount:
    """How much a stage usually does of something, and the least and the most that is worth doing."""

    usual: int
    least: int
    most: int
    what: str = ""


@dataclass(frozen=True)
class PacedTraining:
    """Say that one amount of a stage is the steps of a training, which may be revised while it runs.

    `speed` names the seconds of a step, `included` further ones that are part of a step once it is timed as it runs.
    With `takes_rest`, the training gets the time that no other stage can use.
    """

    amount: str = "steps"
    speed: str = "step"
    included: tuple[str, ...] = ()
    takes_rest: bool = False


class Planned:
    """Base class of stages, and parts of stages, whose amount of work follows from a budget of time."""

    TRAINING: ClassVar[PacedTraining | None] = None
    TIMED_ANEW: ClassVar[bool] = False  # whether everything is timed again before this stage begins

    def amounts(self, run: Any) -> dict[str, WorkAmount] | None:
        """Say how much is done; None where the time that it takes is not known before."""
        return None

    def speeds(self, run: Any) -> dict[str, float]:
        """Time the pieces of the work on this machine; see `StageRun.timed` for what several stages share."""
        return {}

    def seconds(self, amounts: Mapping[str, int], speeds: Mapping[str, float], run: Any) -> float:
        """Estimate how long the work takes."""
        return 0.0

    def describe(self, amounts: Mapping[str, int], run: Any) -> str:
        """Say in a few words what is done."""
        return ""

    def planned(self, amounts: Mapping[str, int], run: Any) -> Any:
        """Give the stage with planned amounts as its options; trainings ask for theirs while they run."""
        return self


@dataclass(frozen=True)
class TimeBudget:
    """Hours for everything, the amounts that are scaled to them, and how long the stages take by plan and speeds.

    `amounts` and the estimate have every planned stage in its order.
    """

    hours: float | None
    amounts: Mapping[str, Mapping[str, WorkAmount]]
    estimate: Callable[[Plan, Speeds], dict[str, float]]
    trainings: Mapping[str, PacedTraining] = field(default_factory=dict)

    @property
    def stages(self) -> tuple[str, ...]:
        return tuple(self.amounts)

    def place(self, stage: str) -> int:
        """Give the number of a stage in that order; 0 for one that is not planned."""
        return self.stages.index(stage) if stage in self.amounts else 0

    @property
    def seconds(self) -> float:
        return 3600 * (self.hours or 0.0) * (1 - KEPT_BACK)

    @property
    def usual(self) -> Plan:
        """Give the plan of a run without a limit of time."""
        return {stage: {name: one.usual for name, one in some.items()} for stage, some in self.amounts.items()}


@dataclass(frozen=True)
class Done:
    """What is behind: finished stages, steps of the training under way, and the seconds that all of it took."""

    stages: tuple[str, ...] = ()
    steps: int = 0
    seconds: float = 0.0


NOTHING = Done()


def left(plan: Plan, speeds: Speeds, budget: TimeBudget, done: Done = NOTHING) -> dict[str, float]:
    """Estimate the seconds that are left of each stage."""
    found = budget.estimate(plan, speeds) | dict.fromkeys(done.stages, 0.0)
    current = _current(budget, done)
    training = budget.trainings.get(current)
    if training is not None:
        found[current] = max(found[current] - done.steps * speeds[current][training.speed], 0.0)
    return found


def within(budget: TimeBudget, speeds: Speeds, plan: Plan | None = None, done: Done = NOTHING) -> Plan:
    """Scale the usual amounts to a budget: all stages alike, within their bounds.

    What `plan` says of stages that are done stays. Where not even the least of everything fits, the least is planned.
    """
    amounts = budget.amounts if plan is None else _after(budget, plan, done)
    seconds = budget.seconds - done.seconds

    def taken(one: Plan) -> float:
        return sum(left(one, speeds, budget, done).values())

    scales = [one.most / max(one.usual, 1) for some in amounts.values() for one in some.values()]
    low, high = 0.0, max(scales, default=0.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if taken(_scaled(amounts, middle)) <= seconds else (low, middle)
    found = _scaled(amounts, low)
    rest = seconds - taken(found)  # goes to the training that takes it
    for stage, training in budget.trainings.items():
        if training.takes_rest and stage not in done.stages:
            own, before = speeds[stage], found[stage][training.amount]
            step = own[training.speed] + sum(own.get(name, 0.0) for name in training.included)
            most = amounts[stage][training.amount].most
            found[stage][training.amount] = max(before, min(most, before + max(int(rest / step), 0)))
    return found


def _after(budget: TimeBudget, plan: Plan, done: Done) -> dict[str, dict[str, WorkAmount]]:
    """Keep what a plan says of stages that are done, and the steps that the training under way has done."""
    found = {stage: dict(some) for stage, some in budget.amounts.items()}
    for stage in (stage for stage in done.stages if stage in found):
        for name, one in found[stage].items():
            found[stage][name] = replace(one, least=plan[stage][name], most=plan[stage][name])
    current = _current(budget, done)
    if (training := budget.trainings.get(current)) is not None:
        one = found[current][training.amount]
        least = max(one.least, done.steps)
        found[current][training.amount] = replace(one, least=least, most=max(least, one.most))
    return found


def _current(budget: TimeBudget, done: Done) -> str:
    return next((stage for stage in budget.stages if stage not in done.stages), "")


def _scaled(amounts: Mapping[str, Mapping[str, WorkAmount]], scale: float) -> dict[str, dict[str, int]]:
    return {
        stage: {name: max(one.least, min(one.most, round(scale * one.usual))) for name, one in some.items()}
        for stage, some in amounts.items()
    }
