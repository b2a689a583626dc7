"""The milliseconds of each design of FlexiBench, put together from measurements of a few.

A design is one stack of layers or two. The designs of one stack are measured; what a second one adds is what it takes
alone, without the embedding, and with a projection where the widths differ. Both are the medians of measured pairs. So
less than two hundred models are measured instead of 9,312, each often enough to be sure of.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from formwright.arch.card import Card
from formwright.core.rng import derive
from formwright.nn.build import build
from formwright.nn.measurement import TimingSettings, measure
from formwright.space.space import Space

Measured = Callable[[Card], float]
PAIRS = 12  # measured for each two widths
CHECKS = 40  # designs that are measured to see how well the sums fit


@dataclass(frozen=True)
class Latencies:
    """The milliseconds of all designs, in the order of the space, and by how much sums miss measurements (median)."""

    milliseconds: np.ndarray
    deviation: float


def quick(length: int) -> Measured:
    """Measure one row of a number of tokens on one thread."""

    def milliseconds(card: Card) -> float:
        return measure(build(card), TimingSettings(length=length, runs=60), memory=False).median_ms

    return milliseconds


def latencies(space: Space, measured: Measured) -> Latencies:
    """Give the milliseconds of every design of a space of one or two stacks."""
    designs = list(space.enumerate())
    single = {design["layers"][0]: measured(space.card(design)) for design in designs if len(design["layers"]) == 1}
    pairs = [design for design in designs if len(design["layers"]) == 2]
    joints = {widths: _joint(space, measured, single, widths, pairs) for widths in sorted(set(map(_widths, pairs)))}
    sums = np.array([_sum(design["layers"], single, joints) for design in designs])
    chosen = derive(0, "flexibench", "latency").choice(len(designs), CHECKS, replace=False)
    real = np.array([measured(space.card(designs[index])) for index in chosen])
    found = Latencies(sums, float(np.median(np.abs(sums[chosen] / real - 1))))
    print(f"latencies: sums differ from {CHECKS} measurements by {found.deviation:.1%} (median)", file=sys.stderr)
    return found


def _widths(design: Any) -> tuple[int, int]:
    first, second = design["layers"]
    return first["hidden"], second["hidden"]


def _joint(
    space: Space, measured: Measured, single: dict[Any, float], widths: tuple[int, int], pairs: Sequence[Any]
) -> float:
    """Give what a pair takes beyond its two stacks alone: less an embedding, and more a projection."""
    alike = [design for design in pairs if _widths(design) == widths]
    chosen = derive(0, "flexibench", "joint", *widths).choice(len(alike), PAIRS, replace=False)
    beyond = [
        measured(space.card(alike[index])) - sum(single[stack] for stack in alike[index]["layers"]) for index in chosen
    ]
    return float(np.median(beyond))


def _sum(stacks: Sequence[Any], single: dict[Any, float], joints: dict[tuple[int, int], float]) -> float:
    alone = sum(single[stack] for stack in stacks)
    return alone if len(stacks) == 1 else alone + joints[stacks[0]["hidden"], stacks[1]["hidden"]]
