"""How long each stage of a compression takes, and how a budget of time is divided among them."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from formwright.core.checks import stored_fields

Order = Literal["first-order", "movement", "l1", "none"]
ORDERS: tuple[Order, ...] = ("first-order", "movement", "l1", "none")
_KEPT_BACK = 0.1  # of a budget, for what cannot be planned
_HALVINGS = 50  # of the interval in which the scale of a plan is looked for
SCORED = 64  # batches that the parts of a fine-tuned model are scored on
STAGES = ("teacher", "super-network", "search", "delivery")
TRAININGS = {"teacher": "teacher_steps", "super-network": "network_steps"}  # stages, and what a plan calls their steps
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
        """Read what `to_json` gave."""
        return cls(**stored_fields(cls, data))


@dataclass(frozen=True)
class Bounds:
    """The least and the most that is worth doing in each stage, whatever the budget."""

    least: Plan
    most: Plan


@dataclass(frozen=True)
class Budget:
    """Hours for everything, the plan that is scaled to them, its bounds, and how many workers and models there are."""

    hours: float
    usual: Plan
    bounds: Bounds
    workers: int
    models: int

    @property
    def seconds(self) -> float:
        """Give the seconds that can be planned."""
        return 3600 * self.hours * (1 - _KEPT_BACK)


@dataclass(frozen=True)
class Done:
    """What is behind: finished stages, steps of the training under way, and the seconds that all of it took."""

    stages: tuple[str, ...] = ()
    steps: int = 0
    seconds: float = 0.0


NOTHING = Done()


def left(plan: Plan, speeds: Speeds, budget: Budget, done: Done = NOTHING) -> dict[str, float]:
    """Estimate the seconds that are left of each stage."""
    found = plan.seconds(speeds, budget.workers, budget.models)
    current = next((stage for stage in STAGES if stage not in done.stages), "")
    step = {"teacher": speeds.teacher, "super-network": speeds.network}.get(current, 0.0)
    over = dict.fromkeys(done.stages, 0.0)
    return found | over | ({current: max(found[current] - done.steps * step, 0.0)} if current else {})


def within(budget: Budget, speeds: Speeds, plan: Plan | None = None, done: Done = NOTHING) -> Plan:
    """Scale the usual plan to a budget: all stages alike, within their bounds, and what is left to the super-network.

    What `plan` says of stages that are done stays. Where not even the least of everything fits, the least is planned.
    """
    bounds = budget.bounds if plan is None else _after(budget.bounds, plan, done)
    seconds = budget.seconds - done.seconds

    def taken(one: Plan) -> float:
        return sum(left(one, speeds, budget, done).values())

    low, high = 0.0, max(most / max(wanted, 1) for most, wanted in _pairs(bounds.most, budget.usual))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if taken(_scaled(budget.usual, middle, bounds)) <= seconds else (low, middle)
    found = _scaled(budget.usual, low, bounds)
    more = int((seconds - taken(found)) / (speeds.network + speeds.answer))
    steps = min(bounds.most.network_steps, found.network_steps + max(more, 0))
    return replace(found, network_steps=max(found.network_steps, steps))


def _after(bounds: Bounds, plan: Plan, done: Done) -> Bounds:
    """Keep what a plan says of stages that are done, and the steps that the training under way has done."""
    fixed: dict[str, int] = {}
    if "teacher" in done.stages:
        fixed |= {"teacher_steps": plan.teacher_steps, "scored": plan.scored}
    if "super-network" in done.stages:
        fixed |= {"network_steps": plan.network_steps}
    least, most = replace(bounds.least, **fixed), replace(bounds.most, **fixed)
    under_way = next((name for stage, name in TRAININGS.items() if stage not in done.stages), None)
    if under_way is not None:
        least = replace(least, **{under_way: max(getattr(least, under_way), done.steps)})
    most = Plan(*(max(low, high) for low, high in _pairs(least, most)))
    return Bounds(least, most)


def _scaled(usual: Plan, scale: float, bounds: Bounds) -> Plan:
    wanted = [round(scale * number) for number in asdict(usual).values()]
    ends = _pairs(bounds.least, bounds.most)
    return Plan(*(max(low, min(high, one)) for one, (low, high) in zip(wanted, ends, strict=True)))


def _pairs(first: Plan, second: Plan) -> list[tuple[int, int]]:
    return list(zip(asdict(first).values(), asdict(second).values(), strict=True))
