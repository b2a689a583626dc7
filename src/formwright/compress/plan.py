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
SCORED = 64  # batches that the parts of a fine-tuned model are scored on
EVERY = 1 << 31  # more rows than any task has
_LOOKS = 2  # at a model that is delivered: on validation, and on as many test rows


@dataclass(frozen=True)
class Speeds:
    """Seconds that the pieces of a compression take.

    Of the teacher: one step, and its judging. Of the super-network: one step, one batch of the teacher's answers, and
    those to all rows, which are asked for but once. Of a sub-network: one validation, of so many `rows`, in a process
    of one thread. Of a delivered model: writing and measuring it, and one step where it is trained alone. `start` is
    what processes take to begin. All of them are `slowed` so many times by what else the machine does.
    """

    teacher: float
    judging: float
    network: float
    answer: float
    answers: float
    validation: float
    writing: float
    alone: float
    start: float
    rows: int
    slowed: float = 1.0


@dataclass(frozen=True)
class Plan:
    """Say how much each stage does: steps of the teacher and of the super-network, designs judged, steps at the end.

    `scored` are the batches that the teacher's parts are scored on. `judged` are the rows of validation, at most, that
    the search judges designs by.
    """

    teacher_steps: int
    network_steps: int
    evaluations: int
    finetune_steps: int = 0
    scored: int = SCORED
    judged: int = EVERY

    def seconds(self, speeds: Speeds, workers: int, models: int) -> dict[str, float]:
        """Estimate how long each stage takes."""
        heard = min(self.network_steps * speeds.answer, speeds.answers)
        share = min(1.0, self.judged / speeds.rows)
        delivered = speeds.writing + _LOOKS * speeds.validation + self.finetune_steps * speeds.alone
        trained = (self.teacher_steps + self.scored) * speeds.teacher  # scoring a batch takes about what a step does
        return {
            "teacher": trained + (1 + _LOOKS) * speeds.judging + speeds.writing,
            "super-network": self.network_steps * speeds.network + heard + speeds.judging,
            "search": speeds.start + self.evaluations * share * speeds.validation / workers,
            "delivery": speeds.start + models * delivered,
        }

    def to_json(self) -> dict[str, int]:
        """Give plain JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> "Plan":
        """Read what `to_json` gave; a plan of an earlier version scores and judges as these did."""
        earlier = {"scored": SCORED, "judged": EVERY}
        return cls(**stored_fields(cls, {**earlier, **data} if isinstance(data, dict) else data))


@dataclass(frozen=True)
class Bounds:
    """The least and the most that is worth doing in each stage, whatever the budget."""

    least: Plan
    most: Plan


def within(hours: float, usual: Plan, bounds: Bounds, speeds: Speeds, workers: int, models: int) -> Plan:
    """Scale the usual plan to a budget: all stages alike, within their bounds, and what is left to the super-network.

    Refuse a budget that is less than the least of everything takes, unless it does so only because the machine is busy
    now: that may pass, and the least is planned.
    """
    budget = 3600 * hours * (1 - _KEPT_BACK)

    def taken(plan: Plan) -> float:
        return sum(plan.seconds(speeds, workers, models).values())

    if (alone := taken(bounds.least) / speeds.slowed) > budget * (1 + 1e-9):  # what is told to be enough shall be
        needed = _rounded_up(alone / 3600 / (1 - _KEPT_BACK))
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
