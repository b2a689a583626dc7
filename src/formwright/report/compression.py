"""What the search of a compressed model notes: its teacher, the widths its sub-networks may have, and the targets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from formwright.report.models import FinalModel, number_in, numbers_in
from formwright.study.events import Event

Widths = tuple[tuple[int, ...], ...]  # of each layer, from the input up


@dataclass(frozen=True)
class Target:
    """A cost that was aimed at, and what the nearest sub-network costs."""

    wanted: float
    met: float

    @property
    def off(self) -> float:
        """Give how far it was missed, as a share of it: negative where the sub-network costs less."""
        return self.met / self.wanted - 1


@dataclass(frozen=True)
class Compression:
    """The search of a compressed model; 0 heads or channels leave that part of a layer out.

    `cost` is what the targets count, such as `macs`; `full_heads` and `full_channels` are the model's own.
    """

    model: str
    teacher: FinalModel
    full_heads: tuple[int, ...]
    full_channels: tuple[int, ...]
    heads: Widths
    channels: Widths
    hidden: tuple[int, ...]
    cost: str
    targets: tuple[Target, ...]

    @property
    def layers(self) -> int:
        """Count the layers of the model."""
        return len(self.full_heads)

    @property
    def count(self) -> int:
        """Count the sub-networks."""
        return prod(len(choices) for choices in (*self.heads, *self.channels)) * max(1, len(self.hidden))


def compression(events: Iterable[Event]) -> Compression | None:
    """Read the last note of a compression; None where there is none that tells a space."""
    notes = [event.data["compress"] for event in events if event.kind == "note" and "compress" in event.data]
    note = _mapping(notes[-1]) if notes else {}
    space = _mapping(note.get("space"))
    full, heads, channels = (_widths(space.get(name)) for name in ("full", "heads", "channels"))
    if not full or not len(full) == len(heads) == len(channels) or any(len(layer) != 2 for layer in full):
        return None
    return Compression(
        model=str(note.get("model", "unnamed")),
        teacher=_teacher(note),
        full_heads=tuple(most for most, _ in full),
        full_channels=tuple(most for _, most in full),
        heads=tuple(tuple(sorted(set(layer))) for layer in heads),
        channels=tuple(tuple(sorted(set(layer))) for layer in channels),
        hidden=next(iter(_widths([space.get("hidden")])), ()),
        cost=str(note.get("cost", "macs")),
        targets=_targets(note.get("targets")),
    )


def as_measured(found: Compression | None, models: Iterable[FinalModel]) -> Compression | None:
    """Give a compression with what was measured of its teacher in turns with the other models."""
    teacher = next((model for model in models if model.role == "teacher"), None)
    if found is None or teacher is None:
        return found
    return replace(found, teacher=replace(found.teacher, costs={**found.teacher.costs, **teacher.costs}))


def with_teacher(models: tuple[FinalModel, ...], found: Compression | None) -> tuple[FinalModel, ...]:
    """Put the teacher first, also while no note tells that it was delivered."""
    if found is None or any(model.role == "teacher" for model in models):
        return models
    return found.teacher, *models


def _teacher(note: Mapping[str, Any]) -> FinalModel:
    told = _mapping(note.get("teacher"))
    return FinalModel(
        name=str(note.get("model", "unnamed")),
        role="teacher",
        params=number_in(told, "params"),
        validation=numbers_in(told.get("validation")),
        test=numbers_in(told.get("test")),
        costs={name: value for name, value in numbers_in(told).items() if name != "params"},
    )


def _targets(given: Any) -> tuple[Target, ...]:
    rows = [numbers_in(row) for row in given] if isinstance(given, list) else []
    return tuple(Target(row["target"], row["cost"]) for row in rows if row.get("target") and "cost" in row)


def _widths(given: Any) -> Widths:
    """Read lists of whole numbers; nothing where one of them is anything else, or empty."""
    rows = given if isinstance(given, list) else []
    return tuple(map(tuple, rows)) if all(map(_are_widths, rows)) else ()


def _are_widths(row: Any) -> bool:
    return isinstance(row, list) and bool(row) and all(type(one) is int and one >= 0 for one in row)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
