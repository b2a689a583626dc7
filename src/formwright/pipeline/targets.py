"""Targets such as `macs<=50%` or `latency_ms<=8`: most costs of delivered models, and stages whose spaces meet them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.limit_syntax import WrittenLimit
from formwright.core.options import Stage
from formwright.cost import COSTS, cost, is_measured
from formwright.pipeline.run import StageRun
from formwright.pipeline.score_parts import MeasureParts
from formwright.pipeline.task_choice import USUAL_LENGTH
from formwright.pipeline.teacher_stage import TeacherStage

USUAL = ("macs=75%", "macs=50%", "macs=35%", "macs=25%")


@dataclass(frozen=True)
class Target:
    """An upper bound on one cost of a model: a share of the given model's cost, or an amount."""

    cost: str
    amount: float
    is_share: bool = False

    @classmethod
    def parse(cls, text: str) -> "Target":
        """Read `macs<=50%`, `params<=10M` or `latency_ms<=8`; `=` means the same as `<=`."""
        limit = WrittenLimit.read(text)
        if limit is None or limit.relation == ">=":
            raise IllegalInput(f"cannot read the target {text!r}; write it like `macs<=50%` or `latency_ms<=8`")
        if limit.name not in COSTS.names():
            raise UnknownName("cost", limit.name, COSTS.names())
        if limit.amount <= 0 or (limit.is_share and limit.amount > 100):
            raise IllegalInput(f"the target {text!r} must be above 0 and, where it is a share, at most 100%")
        return cls(limit.name, limit.amount, limit.is_share)

    @property
    def name(self) -> str:
        """Name the model that is delivered for it."""
        return f"{self.cost}-{self.amount:.15g}{'pct' if self.is_share else ''}"

    def of(self, full: float) -> float:
        """Give the amount, where the given model costs so much: never more than that, which no sub-network exceeds."""
        return self.amount / 100 * full if self.is_share else min(self.amount, full)


Ranges = Mapping[str, tuple[float, float]]  # by cost: what the least that is still a model costs, and the given model


def limits(targets: Sequence[Target], ranges: Ranges) -> dict[str, str]:
    """Give the targets as limits by name; refuse one that no sub-network can meet, and tell the range that can.

    One above the given model's own cost is met by all of them, and limits to that cost; `redundant_targets` says so.
    """
    found: dict[str, str] = {}
    for target in targets:
        least, full = ranges[target.cost]
        amount = target.of(full)
        if amount < least:
            tenths = math.ceil(1000 * least / full)
            # what is reported can be asked for: divisions are rounded, so that it may fall short by a last digit
            share = tenths / 10 if tenths / 10 / 100 * full >= least else (tenths + 1) / 10
            raise IllegalInput(
                f"the target {target.cost} {amount:.4g} ({amount / full:.1%} of the model's) cannot be met: "
                f"sub-networks of this model reach from {least:.4g} ({share:g}%) to {full:.4g}"
            )
        found[target.name] = f"{target.cost}<={amount!r}"
    return found


def redundant_targets(targets: Sequence[Target], ranges: Ranges) -> list[str]:
    """Say of each target above the given model's own cost that it asks for nothing."""
    return [
        f"the target {target.cost} {target.amount:.4g} lies above the model's own {ranges[target.cost][1]:.4g}: "
        "every sub-network meets it, so that the best of all is delivered for it"
        for target in targets
        if not target.is_share and target.amount > ranges[target.cost][1]
    ]


Costs = Mapping[str, Callable[[Card], float]]


class TargetedSpace(Stage):
    """Base class of stages that make the space of a model's smaller versions; some are delivered for targets."""

    teacher: TeacherStage
    latency: MeasureParts | None
    targets: tuple[str, ...]

    def check_targets(self) -> None:
        """Refuse targets that cannot be read, or that nothing measures."""
        if any(target.cost == MeasureParts.COST for target in self.parsed) and self.latency is None:
            raise IllegalInput(
                f"a target in milliseconds needs the stage that measures the model's parts (the option latency of "
                f"{self.NAME}). Give targets in MACs or parameters, such as macs=50%"
            )

    def smallest(self, run: StageRun) -> Card:
        """Give the least that is still a model."""
        raise TypeError(f"{type(self).__name__} makes no space")

    @property
    def parsed(self) -> tuple[Target, ...]:
        return tuple(Target.parse(text) for text in self.targets)

    @property
    def lowers(self) -> tuple[str, ...]:
        """Name the costs that a search lowers: those of the targets."""
        return tuple(dict.fromkeys(target.cost for target in self.parsed))

    @property
    def length(self) -> int:
        """Give the tokens of a row at which costs are counted."""
        return self.teacher.training.length or USUAL_LENGTH

    def card(self, run: StageRun) -> Card:
        return self.teacher.card(run)

    def costs(self, run: StageRun) -> Costs:
        """Give the costs that the targets name, the first of them first."""
        found: dict[str, Callable[[Card], float]] = {}
        for name in self.lowers:
            if self.latency is not None and name == self.latency.COST:
                found[name] = run.artifact(self.latency)
            elif is_measured(name):
                known: Any = COSTS.get(name)
                found[name] = run.run.once((name, self.length), partial(known.meter, self.length))
            else:
                found[name] = partial(cost, name=name, length=self.length)
        return found

    def ranges(self, run: StageRun) -> Ranges:
        """Say what sub-networks cost, from the least to the model."""
        least, card = self.smallest(run), self.card(run)
        return {name: (one(least), one(card)) for name, one in self.costs(run).items()}

    def check(self, run: StageRun) -> None:
        ranges = self.ranges(run)
        limits(self.parsed, ranges)
        for line in redundant_targets(self.parsed, ranges):
            run.tell(line)
