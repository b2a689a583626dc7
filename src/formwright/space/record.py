"""A record: several named parts side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.random import Generator

from formwright.core.errors import Fault, IllegalInput, nearest
from formwright.space.gene import Gene, Path
from formwright.space.part import By, Fill, Part, Vector, enumerate_product, wrong
from formwright.space.value import Fields


@dataclass(frozen=True)
class Record(Part[Fields]):
    """Put named parts side by side; `Record.of()`, without a field, is the part with exactly one value and no gene."""

    fields: tuple[tuple[str, Part[Any]], ...]

    @classmethod
    def of(cls, **fields: Part[Any]) -> Record:
        """Make a record from keyword arguments, in the order given."""
        return cls(tuple(fields.items()))

    def __post_init__(self) -> None:
        names = [name for name, _ in self.fields]
        for name in names:
            if not name.isidentifier() or name.startswith("_") or hasattr(Fields.of(), name):
                raise IllegalInput(
                    f"{name!r} cannot name a field: it must be a plain identifier other than a method's name"
                )
        if len(set(names)) < len(names):
            raise IllegalInput(f"field names must be distinct, these are not: {', '.join(names)}")

    @cached_property
    def _parts(self) -> dict[str, Part[Any]]:
        return dict(self.fields)

    @cached_property
    def _total(self) -> int:
        return math.prod(part.count() for _, part in self.fields)

    def sample(self, rng: Generator, by: By = "design") -> Fields:
        return Fields(tuple((name, part.sample(rng, by)) for name, part in self.fields))

    def contains(self, value: object) -> bool:
        return (
            isinstance(value, Fields)
            and tuple(value) == tuple(self._parts)
            and all(part.contains(value[name]) for name, part in self.fields)
        )

    def enumerate(self) -> Iterator[Fields]:
        names = tuple(self._parts)
        for values in enumerate_product([part for _, part in self.fields]):
            yield Fields(tuple(zip(names, values, strict=True)))

    def genes(self, value: Fields, path: Path = ()) -> Iterator[Gene]:
        for name, part in self.fields:
            yield from part.genes(value[name], (*path, name))

    def put(self, value: Fields, path: Path, option: Any, fill: Fill) -> Fields:
        target, *below = path
        return Fields(
            tuple(
                (name, self._parts[name].put(held, tuple(below), option, fill) if name == target else held)
                for name, held in value.pairs
            )
        )

    def crossover(self, first: Fields, second: Fields, rng: Generator) -> Fields:
        return Fields(tuple((name, part.crossover(first[name], second[name], rng)) for name, part in self.fields))

    @cached_property
    def width(self) -> int:
        return sum(part.width for _, part in self.fields)

    def write(self, value: Fields, vector: Vector) -> None:
        for name, part, block in self._blocks(vector):
            part.write(value[name], block)

    def decode(self, vector: Vector) -> Fields:
        return Fields(tuple((name, part.decode(block)) for name, part, block in self._blocks(vector)))

    def to_json(self, value: Fields) -> Any:
        return {name: part.to_json(value[name]) for name, part in self.fields}

    def from_json(self, data: object, where: Path, faults: list[Fault]) -> Any:
        if not isinstance(data, dict):
            return wrong(where, f"is {data!r}; expected an object with {', '.join(self._parts) or 'no fields'}", faults)
        for name in data:
            if name not in self._parts:
                close = nearest(str(name), self._parts)
                wrong((*where, name), f"is not a field here{f'; did you mean {close[0]!r}?' if close else ''}", faults)
        for name in self._parts:
            if name not in data:
                wrong((*where, name), "is missing", faults)
        present = [(name, part) for name, part in self.fields if name in data]
        return Fields(tuple((name, part.from_json(data[name], (*where, name), faults)) for name, part in present))

    def _blocks(self, vector: Vector) -> Iterator[tuple[str, Part[Any], Vector]]:
        start = 0
        for name, part in self.fields:
            yield name, part, vector[start : start + part.width]
            start += part.width
