"""Designs that keep a target by the sum of their parts, and miss it when they are measured."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from formwright.core.errors import EvaluationFailed
from formwright.core.records import Objective
from formwright.study.events import Event

TOO_SLOW = "too slow"  # the notes of such designs
TRIES = 5  # designs that are measured for a target before none is expected to keep it


class TooSlow(EvaluationFailed):
    """Say that a design misses a target, so that the next best one is to be tried."""


@dataclass(frozen=True)
class Miss:
    """A design that was measured beyond a target, and what was found."""

    target: str
    digest: str
    trial: int | None
    measured: float


def misses(events: Iterable[Event]) -> dict[str, dict[str, Miss]]:
    """Read from a log which designs missed which targets: by the name of the target, and by digest."""
    found: dict[str, dict[str, Miss]] = {}
    for event in events:
        if event.kind == "note" and TOO_SLOW in event.data:
            for miss in (Miss(**entry) for entry in event.data[TOO_SLOW]):
                found.setdefault(miss.target, {})[miss.digest] = miss
    return found


def note_of(missed: Iterable[Miss]) -> dict[str, object]:
    """Give what `misses` reads."""
    return {TOO_SLOW: [asdict(miss) for miss in missed]}


def exceeds(costs: Mapping[str, float], limit: str) -> bool:
    """Tell whether what was measured of a model lies beyond a limit, which the sum of its parts may have kept."""
    wanted = Objective.parse(limit)
    return wanted.name in costs and not wanted.meets(costs[wanted.name])
