"""How long each stage of a compression takes, and how a budget of time is divided among them."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from formwright.core.checks import stored_fields
from formwright.core.errors import IllegalInput

Order = Literal["first-order", "movement", "l1", "none"]
ORDERS: tuple[Order, ...] = ("first-order", "movement", "l1", "none")
_KEPT_BACK = 0.1  # of a budget, for what cannot be planned
_HALVINGS = 50  # of the interval in which the scale of a plan is looked for


@dataclass(frozen=True)
class Speeds:
    """Seconds that the pieces of a compression take.

    Of the teacher: one step, the scoring of its parts, and its judging. Of the super-network: one step, one batch of
    the teacher's answers, and those to all rows, which are asked for but once. Of a sub-network: one validation in a
    process of one thread. Of a delivered model: writing, measuring and testing it, and one step where it is trained
    alone. `start` is what processes take to begin.
    """

    teacher: float
    scoring: float
    judging: float
    network: float
    answer: float
    answers: float
    validation: float
    delivery: float
    alone: float
    start: float


@dataclass(frozen=True)
class Plan:
    """Say how much each stage does: steps of the teacher and of the super-network, designs judged, steps at the end."""

    teacher_steps: int
    network_steps: int
    evaluations: int
    finetune_steps: int = 0

    def seconds(self, speeds: Speeds, workers: int, models: int) -> dict[str, float]:
        """Estimate how long each stage takes."""
        heard = min(self.network_steps * speeds.answer, speeds.answers)
        return {
            "teacher": self.teacher_steps * speeds.teacher + speeds.scoring + speeds.judging + speeds.delivery,
            "super-network": self.network_steps * speeds.network + heard + speeds.judging,
            "search": speeds.start + self.evaluations * speeds.validation / workers,
            "delivery": speeds.start + models * (speeds.delivery + self.finetune_steps * speeds.alone),
        }

    def to_json(self) -> dict[str, int]:
        """Give plain JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> "Plan":
        """Read what `to_json` gave."""
        return cls(**stored_fields(cls, data))


@dataclass(frozen=True)
class Bounds:
    """The least and the most that is worth doing in each stage, whatever the budget."""

    least: Plan
    most: Plan


def within(hours: float, usual: Plan, bounds: Bounds, speeds: Speeds, workers: int, models: int) -> Plan:
    """Scale the usual plan to a budget: all stages alike, within their bounds, and what is left to the super-network.

    Refuse a budget that is less than the least of everything takes.
    """
    budget = 3600 * hours * (1 - _KEPT_BACK)

    def taken(plan: Plan) -> float:
        return sum(plan.seconds(speeds, workers, models).values())

    if taken(bounds.least) > budget * (1 + 1e-9):  # what is told to be enough shall be enough
        needed = _rounded_up(taken(bounds.least) / 3600 / (1 - _KEPT_BACK))
        raise IllegalInput(f"{hours:g} hours are too few here: the least takes about {needed:g}; give --hours more")
    low, high = 0.0, max(most / max(wanted, 1) for most, wanted in _pairs(bounds.most, usual))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if taken(_scaled(usual, middle, bounds)) <= budget else (low, middle)
    plan = _scaled(usual, low, bounds)
    left = int((budget - taken(plan)) / (speeds.network + speeds.answer))
    steps = min(bounds.most.network_steps, plan.network_steps + max(left, 0))
    return replace(plan, network_steps=max(plan.network_steps, steps))


def _scaled(usual: Plan, scale: float, bounds: Bounds) -> Plan:
    wanted = [round(scale * number) for number in asdict(usual).values()]
    ends = _pairs(bounds.least, bounds.most)
    return Plan(*(max(low, min(high, one)) for one, (low, high) in zip(wanted, ends, strict=True)))


def _pairs(first: Plan, second: Plan) -> list[tuple[int, int]]:
    return list(zip(asdict(first).values(), asdict(second).values(), strict=True))


def _rounded_up(hours: float) -> float:
    digits = 10.0 ** (1 - math.floor(math.log10(hours)))
    return math.ceil(hours * digits) / digits
