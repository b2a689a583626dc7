"""How long the stages of a block-wise compression take, and how a budget of time is divided among them."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from formwright.core.checks import stored_fields

_KEPT_BACK = 0.1  # of a budget, for what cannot be planned
_LEAST_STEPS = 10
_MOST = 50.0  # times the usual number of steps, which no budget exceeds


@dataclass(frozen=True)
class Speeds:
    """Seconds of a block's step, of judging a block's chains, of a student's step, and of all that is done once."""

    block: float
    judging: float
    student: float
    once: float


@dataclass(frozen=True)
class Shape:
    """Count what is to be done: blocks, rounds of shrinking, models, and processes that do it."""

    blocks: int
    rounds: int
    models: int
    workers: int


@dataclass(frozen=True)
class Plan:
    """Say how many steps a block is trained between two rounds, and a whole student in the end.

    `spent` are the seconds that were worked before the students; `revised` says that their steps were planned anew by
    what was left then.
    """

    round_steps: int
    student_steps: int
    spent: float = 0.0
    revised: bool = False

    def seconds(self, speeds: Speeds, shape: Shape) -> dict[str, float]:
        """Estimate how long each stage takes."""
        block = (shape.rounds + 1) * (self.round_steps * speeds.block + speeds.judging)
        return {
            "preparation": speeds.once,
            "blocks": block * _turns(shape.blocks, shape.workers),
            "students": self.student_steps * speeds.student * _turns(shape.models, shape.workers),
        }

    def to_json(self) -> dict[str, Any]:
        """Give plain JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> "Plan":
        """Read what `to_json` gave."""
        return cls(**stored_fields(cls, data))

    def scaled(self, factor: float) -> "Plan":
        """Give a plan of so many times the steps, or of the least that is worth doing."""
        rounds, students = (
            max(_LEAST_STEPS, round(factor * steps)) for steps in (self.round_steps, self.student_steps)
        )
        return Plan(rounds, students)


def within(hours: float, usual: Plan, speeds: Speeds, shape: Shape) -> Plan:
    """Scale the usual plan to a budget of time; where not even the least fits, the least is planned."""
    budget = 3600 * hours * (1 - _KEPT_BACK)

    def taken(factor: float) -> float:
        return sum(usual.scaled(factor).seconds(speeds, shape).values())

    low, high = 0.0, _MOST
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if taken(middle) <= budget else (low, middle)
    return usual.scaled(low)


def revised(hours: float, plan: Plan, usual: Plan, speeds: Speeds, shape: Shape) -> Plan:
    """Plan the steps of the students anew, by the time that is left when the blocks are trained."""
    left = 3600 * hours * (1 - _KEPT_BACK) - plan.spent
    steps = int(left / (speeds.student * _turns(shape.models, shape.workers)))
    most = round(_MOST * usual.student_steps)
    return replace(plan, student_steps=min(max(steps, _LEAST_STEPS), most), revised=True)


def _turns(tasks: int, workers: int) -> int:
    return -(-tasks // workers)
