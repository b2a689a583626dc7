"""Limits that no result can keep, refused before anything is trained."""

import math
from collections.abc import Iterable

from formwright.core.errors import IllegalInput
from formwright.core.records import Objective
from formwright.tasks.metrics import METRICS


def refuse_impossible_bounds(limits: Iterable[Objective]) -> None:
    """Refuse limits of one name that contradict each other, and a limit beyond what its score or cost can be."""
    least: dict[str, Objective] = {}
    most: dict[str, Objective] = {}
    for limit in limits:
        assert limit.bound is not None
        side, tighter = (most, min) if limit.direction == "min" else (least, max)
        side[limit.name] = tighter(side.get(limit.name, limit), limit, key=lambda one: one.bound or 0.0)
        _refuse_out_of_range(limit)
    for name, low in least.items():
        high = most.get(name)
        if high is not None and _bound(low) > _bound(high):
            raise IllegalInput(f"the limits {low} and {high} contradict each other: no {name} keeps both; drop one")


def _refuse_out_of_range(limit: Objective) -> None:
    """Refuse a limit that not even the best possible value keeps; costs have values from 0 on."""
    low, high = METRICS[limit.name].range if limit.name in METRICS else (0.0, math.inf)
    if not (limit.meets(low) or limit.meets(high)):
        top = f"from {low:g} to {high:g}" if high < math.inf else f"at least {low:g}"
        raise IllegalInput(f"the limit {limit} can never be kept: {limit.name} is {top}; give a value in that range")


def _bound(limit: Objective) -> float:
    assert limit.bound is not None
    return limit.bound
