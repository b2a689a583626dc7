"""How long each stage of a compression takes, and how a budget of time is divided among them."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from formwright.core.checks import stored_fields
from formwright.core.errors import IllegalInput

Order = Literal["first-order", "l1", "none"]
ORDERS: tuple[Order, ...] = ("first-order", "l1", "none")
_KEPT_BACK = 0.1  # of a budget, for what cannot be planned


@dataclass(frozen=True)
class Speeds:
    """Seconds of one step of the teacher, of one of the super-network, of one validation, and of one delivery."""

    teacher: float
    network: float
    validation: float
    delivery: float


@dataclass(frozen=True)
class Plan:
    """Say how much each stage does: steps of the teacher and of the super-network, designs judged, steps at the end."""

    teacher_steps: int
    network_steps: int
    evaluations: int
    finetune_steps: int = 0

    def seconds(self, speeds: Speeds, workers: int, models: int) -> dict[str, float]:
        """Estimate how long each stage takes."""
        return {
            "teacher": self.teacher_steps * speeds.teacher,
            "super-network": self.network_steps * speeds.network,
            "search": self.evaluations * speeds.validation / workers,
            "delivery": models * (speeds.delivery + self.finetune_steps * speeds.teacher),
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
    least = sum(bounds.least.seconds(speeds, workers, models).values())
    if least > budget:
        needed = least / 3600 / (1 - _KEPT_BACK)
        raise IllegalInput(f"{hours:g} hours are too few here: the least takes about {needed:.2g}; give --hours more")
    scale = budget / sum(usual.seconds(speeds, workers, models).values())
    plan = Plan(
        *(
            max(low, min(high, round(scale * wanted)))
            for low, high, wanted in zip(
                asdict(bounds.least).values(), asdict(bounds.most).values(), asdict(usual).values(), strict=True
            )
        )
    )
    others = {name: value for name, value in plan.seconds(speeds, workers, models).items() if name != "super-network"}
    left = int((budget - sum(others.values())) / speeds.network)
    steps = max(bounds.least.network_steps, min(bounds.most.network_steps, left))
    return Plan(plan.teacher_steps, steps, plan.evaluations, plan.finetune_steps)
