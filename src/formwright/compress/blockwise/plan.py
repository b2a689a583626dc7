"""How long the stages of a block-wise compression take, and how a budget of time is divided among them."""

from dataclasses import asdict, dataclass
from typing import Any

from formwright.core.checks import stored_fields
from formwright.core.errors import IllegalInput

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
    """Say how many steps a block is trained between two rounds, and a whole student in the end."""

    round_steps: int
    student_steps: int

    def seconds(self, speeds: Speeds, shape: Shape) -> dict[str, float]:
        """Estimate how long each stage takes."""
        block = (shape.rounds + 1) * (self.round_steps * speeds.block + speeds.judging)
        return {
            "preparation": speeds.once,
            "blocks": block * _turns(shape.blocks, shape.workers),
            "students": self.student_steps * speeds.student * _turns(shape.models, shape.workers),
        }

    def to_json(self) -> dict[str, int]:
        """Give plain JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> "Plan":
        """Read what `to_json` gave."""
        return cls(**stored_fields(cls, data))

    def scaled(self, factor: float) -> "Plan":
        """Give a plan of so many times the steps, or of the least that is worth doing."""
        return Plan(*(max(_LEAST_STEPS, round(factor * steps)) for steps in (self.round_steps, self.student_steps)))


def within(hours: float, usual: Plan, speeds: Speeds, shape: Shape) -> Plan:
    """Scale the usual plan to a budget of time; refuse one that is less than the least of everything takes."""
    budget = 3600 * hours * (1 - _KEPT_BACK)

    def taken(factor: float) -> float:
        return sum(usual.scaled(factor).seconds(speeds, shape).values())

    if taken(0.0) > budget:
        least = taken(0.0) / 3600 / (1 - _KEPT_BACK)
        raise IllegalInput(f"{hours:g} hours are too few here: the least takes about {1.01 * least:.2g}; give more")
    low, high = 0.0, _MOST
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if taken(middle) <= budget else (low, middle)
    return usual.scaled(low)


def _turns(tasks: int, workers: int) -> int:
    return -(-tasks // workers)
