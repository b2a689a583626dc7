"""How small the delivered models shall be: targets such as `macs<=50%` or `latency_ms<=8`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.limit_syntax import WrittenLimit
from formwright.cost import COSTS

USUAL = ("macs=75%", "macs=50%", "macs=35%", "macs=25%")


@dataclass(frozen=True)
class Target:
    """A most that a model may cost: a share of the given model's cost, or an amount."""

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

    def lies_above(self, full: float) -> bool:
        """Tell whether every sub-network of a model that costs so much meets it."""
        return not self.is_share and self.amount > full


@dataclass(frozen=True)
class Range:
    """What sub-networks cost: from the least that is still a model to the given model, by one cost."""

    least: float
    full: float


def limits(targets: Sequence[Target], ranges: Mapping[str, Range]) -> dict[str, str]:
    """Give the targets as limits by name; refuse one that no sub-network can meet, and tell the range that can.

    One above the given model's own cost is met by all of them, and limits to that cost; `redundant_targets` says so.
    """
    found: dict[str, str] = {}
    for target in targets:
        reach = ranges[target.cost]
        amount = target.of(reach.full)
        if amount < reach.least:
            share = f" ({amount / reach.full:.1%} of the model's)"
            least = math.ceil(1000 * reach.least / reach.full) / 10  # what is told can be asked for
            raise IllegalInput(
                f"the target {target.cost} {amount:.4g}{share} cannot be met: sub-networks of this model reach from "
                f"{reach.least:.4g} ({least:g}%) to {reach.full:.4g}"
            )
        found[target.name] = f"{target.cost}<={amount!r}"
    return found


def redundant_targets(targets: Sequence[Target], ranges: Mapping[str, Range]) -> list[str]:
    """Say of each target above the given model's own cost that it asks for nothing."""
    return [
        f"the target {target.cost} {target.amount:.4g} lies above the model's own {ranges[target.cost].full:.4g}: "
        "every sub-network meets it, so that the best of all is delivered for it"
        for target in targets
        if target.lies_above(ranges[target.cost].full)
    ]
