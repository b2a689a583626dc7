"""What a study is made of: objectives, budgets, requests, observations and trials, as plain values."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

from formwright.core.checks import finite, natural, put, stored_fields
from formwright.core.codec import canonical
from formwright.core.errors import IllegalInput
from formwright.core.limit_syntax import FORMS, NAME, WrittenLimit

if TYPE_CHECKING:
    from formwright.core.protocols import CardLike

Direction = Literal["max", "min"]
State = Literal["pending", "finished", "failed"]

_GOAL = re.compile(rf"({NAME}):(max|min)")


@dataclass(frozen=True)
class Objective:
    """Name a metric, the direction that is better, and optionally the worst value that is still allowed."""

    name: str
    direction: Direction
    bound: float | None = None

    def __post_init__(self) -> None:
        if self.direction not in get_args(Direction):
            raise IllegalInput(f"the direction of {self.name} is {self.direction!r}; it must be 'max' or 'min'.")
        if self.bound is not None:
            put(self, bound=finite(f"the bound of {self.name}", self.bound))

    @classmethod
    def parse(cls, text: str) -> Objective:
        """Read `accuracy:max`, `latency_ms:min`, `params<=5M` or `accuracy>=0.8`."""
        if not isinstance(text, str):
            raise IllegalInput(f"an objective or a limit is text such as {FORMS}, not {text!r}")
        if goal := _GOAL.fullmatch(text.strip()):
            return cls(goal[1], "max" if goal[2] == "max" else "min")
        limit = WrittenLimit.read(text)
        if limit is None:
            raise IllegalInput(f"cannot read the objective {text!r}. Write it like `accuracy:max` or {FORMS}.")
        if limit.is_share:
            raise IllegalInput(f"{text!r} is a share of something that is not known here; give {limit.name} a number")
        if limit.relation == "=":
            raise IllegalInput(f"{text!r} is no limit; write `<=` or `>=`, for example {FORMS}")
        return cls(limit.name, "min" if limit.relation == "<=" else "max", limit.amount)

    def meets(self, value: float) -> bool:
        """Tell whether `value` respects the bound; without a bound every value does."""
        if self.bound is None:
            return True
        return value <= self.bound if self.direction == "min" else value >= self.bound

    def __str__(self) -> str:
        if self.bound is None:
            return f"{self.name}:{self.direction}"
        return f"{self.name}{'<=' if self.direction == 'min' else '>='}{self.bound!r}"


@dataclass(frozen=True)
class Budget:
    """Limit an evaluation to a number of training steps; None means to the end."""

    steps: int | None = None

    def __post_init__(self) -> None:
        if self.steps is not None:
            put(self, steps=natural("the steps of a budget", self.steps))

    @classmethod
    def full(cls) -> Budget:
        return cls(None)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> Budget:
        """Read what `to_json` wrote."""
        return cls(**stored_fields(cls, data))


@dataclass(frozen=True)
class Measure:
    """Hold a measured or counted value, its unit, and the interval it lies in when it is uncertain."""

    value: float
    unit: str
    interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        finite("a measure", self.value)  # checked, not converted: parameter counts stay exact integers
        if self.interval is not None:
            low, high = (finite("the interval of a measure", end) for end in self.interval)
            if low > high:
                raise IllegalInput(f"the interval of a measure is ({low}, {high}); give the lower end first.")
            put(self, interval=(low, high))


@dataclass(frozen=True)
class Spent:
    """Account for what an evaluation used: wall-clock seconds, training steps, multiply-accumulates."""

    seconds: float = 0.0
    steps: int = 0
    macs: int = 0

    def __post_init__(self) -> None:
        put(self, seconds=finite("the seconds spent", self.seconds))
        put(self, steps=natural("the steps spent", self.steps), macs=natural("the MACs spent", self.macs, math.inf))


@dataclass(frozen=True)
class Observation:
    """Report an evaluation: metrics by name, what it spent, and the places of what it wrote, by name."""

    metrics: Mapping[str, float] = field(hash=False)
    spent: Spent = Spent()
    artifacts: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        try:
            metrics = {name: finite(f"the metric {name!r}", value) for name, value in self.metrics.items()}
        except IllegalInput as error:
            raise IllegalInput(f"{error} Record the trial as failed, with the reason.") from None
        put(self, metrics=metrics, artifacts=dict(self.artifacts))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> Observation:
        """Read what `to_json` wrote."""
        values = stored_fields(cls, data)
        return cls(values["metrics"], Spent(**stored_fields(Spent, values["spent"])), values["artifacts"])


@dataclass(frozen=True)
class DataCard:
    """A design that is not a transformer of ours: plain JSON data, which only its own evaluator understands."""

    data: Any = field(hash=False)

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the data, in hexadecimal."""
        return hashlib.sha256(canonical(self.data).encode()).hexdigest()

    def to_json(self) -> Any:
        return self.data


def as_card(built: Any) -> CardLike:
    """Take what a space builds as a card; plain data become a card of their own."""
    return DataCard(built) if isinstance(built, dict | list | str | int | float) else built


@dataclass(frozen=True)
class Request:
    """Ask for one card to be evaluated; `parent` is the number of the trial it descends from.

    `design` is the value in the space that the card was built from, where there is one.
    """

    card: CardLike
    budget: Budget = Budget()
    parent: int | None = None
    design: object = None

    def __post_init__(self) -> None:
        if self.parent is not None:
            put(self, parent=natural("the parent of a request", self.parent))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data, without the design: only its space can write that."""
        return {"card": self.card.to_json(), "budget": self.budget.to_json(), "parent": self.parent}

    @classmethod
    def from_json(cls, data: Any, read_card: Callable[[Any], CardLike]) -> Request:
        """Read what `to_json` wrote; `read_card` reads the card."""
        values = stored_fields(cls, data, left_out=("design",))
        return cls(read_card(values["card"]), Budget.from_json(values["budget"]), values["parent"])


@dataclass(frozen=True)
class Trial:
    """Pair a request with its outcome: an observation when finished, a reason when failed, neither while pending."""

    number: int
    request: Request
    state: State = "pending"
    observation: Observation | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        put(self, number=natural("the number of a trial", self.number))
        if self.state not in get_args(State):
            raise IllegalInput(f"trial {self.number} is {self.state!r}; known states: {', '.join(get_args(State))}.")
        if (self.state == "finished") != (self.observation is not None):
            raise IllegalInput(f"trial {self.number} is {self.state}; exactly the finished trials have an observation.")
        if (self.state == "failed") != bool(self.reason):
            raise IllegalInput(f"trial {self.number} is {self.state}; exactly the failed trials have a reason.")

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data, without the design of the request."""
        outcome = None if self.observation is None else self.observation.to_json()
        return {**vars(self), "request": self.request.to_json(), "observation": outcome}

    @classmethod
    def from_json(cls, data: Any, read_card: Callable[[Any], CardLike]) -> Trial:
        """Read what `to_json` wrote; `read_card` reads the card."""
        values = stored_fields(cls, data)
        outcome = None if values["observation"] is None else Observation.from_json(values["observation"])
        return cls(**values | {"request": Request.from_json(values["request"], read_card), "observation": outcome})


@dataclass(frozen=True)
class History:
    """Show a searcher every trial so far, in the order they were asked for."""

    trials: tuple[Trial, ...] = ()

    @cached_property
    def finished(self) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if trial.state == "finished")

    @cached_property
    def pending(self) -> tuple[Trial, ...]:
        """Return the trials whose outcome is not known yet."""
        return tuple(trial for trial in self.trials if trial.state == "pending")

    @cached_property
    def digests(self) -> frozenset[str]:
        """Return the digests of all cards asked for, whatever became of them, so that none is asked for twice."""
        return frozenset(trial.request.card.digest for trial in self.trials)
