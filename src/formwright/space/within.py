"""A part within another: fewer values, written and encoded like those of the whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from numpy.random import Generator

from formwright.core.errors import Fault
from formwright.space.choice import Choice
from formwright.space.gene import Gene, Path
from formwright.space.part import By, Fill, Part, Vector, wrong
from formwright.space.record import Record
from formwright.space.row import Row
from formwright.space.switch import Switch
from formwright.space.value import Case, Fields


@dataclass(frozen=True)
class Within(Part[Any]):
    """Keep those values of `whole` that `part` has.

    Encodings and JSON are those of the whole, so that values of several parts within one whole can be compared. Moves
    may start from any value of the whole, and lead to values of the part: what the part lacks is replaced first.
    """

    whole: Part[Any]
    part: Part[Any]

    @property
    def _total(self) -> int:
        return self.part.count()

    def sample(self, rng: Generator, by: By = "design") -> Any:
        return self.part.sample(rng, by)

    def contains(self, value: object) -> bool:
        return self.part.contains(value)

    def enumerate(self) -> Iterator[Any]:
        return self.part.enumerate()

    def genes(self, value: Any, path: Path = ()) -> Iterator[Gene]:
        return self.part.genes(brought_into(self.part, value), path)

    def put(self, value: Any, path: Path, option: Any, fill: Fill) -> Any:
        return self.part.put(brought_into(self.part, value), path, option, fill)

    def crossover(self, first: Any, second: Any, rng: Generator) -> Any:
        return self.part.crossover(brought_into(self.part, first), brought_into(self.part, second), rng)

    @property
    def width(self) -> int:
        return self.whole.width

    def write(self, value: Any, vector: Vector) -> None:
        self.whole.write(value, vector)

    def decode(self, vector: Vector) -> Any:
        return brought_into(self.part, self.whole.decode(vector))

    def to_json(self, value: Any) -> Any:
        return self.whole.to_json(value)

    def from_json(self, data: object, where: Path, faults: list[Fault]) -> Any:
        before = len(faults)
        value = self.whole.from_json(data, where, faults)
        if len(faults) == before and not self.part.contains(value):
            return wrong(where, "is outside the part of the space that is searched", faults)
        return value


def brought_into(part: Part[Any], value: Any) -> Any:
    """Give the value of a part that is like a value of the whole: what the part lacks becomes its first option."""
    if part.contains(value):
        return value
    match part:
        case Record(fields):
            return Fields(tuple((name, brought_into(inner, value[name])) for name, inner in fields))
        case Switch(cases) if value.tag in dict(cases):
            return Case(value.tag, brought_into(dict(cases)[value.tag], value.value))
        case Row(parts, lengths, tied):
            return _members(parts, min(lengths, key=lambda length: abs(length - len(value))), tied, value)
        case Choice(options):
            return options[0]
        case _:
            return next(part.enumerate())


def _members(parts: tuple[Part[Any], ...], length: int, tied: int, value: tuple[Any, ...]) -> tuple[Any, ...]:
    """Fit each group to the first member that stands in its place, or else to the last that there is."""
    heads = [
        brought_into(part, value[min(group * tied, len(value) - 1)]) if value else next(part.enumerate())
        for group, part in enumerate(parts)
    ]
    return tuple(heads[index // tied] for index in range(length))
