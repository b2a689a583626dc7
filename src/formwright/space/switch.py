"""A conditional: which genes exist depends on the case taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from formwright.core.errors import Fault, IllegalInput
from formwright.space.draw import below, weighted
from formwright.space.gene import Gene, Path
from formwright.space.part import By, Fill, Part, Vector, wrong
from formwright.space.value import Case


@dataclass(frozen=True)
class Switch(Part[Case]):
    """Take one of several tagged cases; only the genes of the case taken exist.

    A case without genes of its own is an empty record: `Switch.of(convolution=Choice((3, 5)), identity=Record.of())`.
    """

    cases: tuple[tuple[str, Part[Any]], ...]

    @classmethod
    def of(cls, **cases: Part[Any]) -> Switch:
        """Make a switch from keyword arguments, in the order given."""
        return cls(tuple(cases.items()))

    def __post_init__(self) -> None:
        if not self.cases or len(self._parts) < len(self.cases):
            raise IllegalInput(f"tags must be distinct and at least one, not {[tag for tag, _ in self.cases]}")

    @cached_property
    def _parts(self) -> dict[str, Part[Any]]:
        return dict(self.cases)

    @cached_property
    def _total(self) -> int:
        return sum(part.count() for _, part in self.cases)

    def sample(self, rng: Generator, by: By = "design") -> Case:
        counts = [part.count() for _, part in self.cases]
        index = weighted(rng, counts) if by == "design" else below(rng, len(counts))
        tag, part = self.cases[index]
        return Case(tag, part.sample(rng, by))

    def contains(self, value: object) -> bool:
        return isinstance(value, Case) and value.tag in self._parts and self._parts[value.tag].contains(value.value)

    def enumerate(self) -> Iterator[Case]:
        for tag, part in self.cases:
            for value in part.enumerate():
                yield Case(tag, value)

    def genes(self, value: Case, path: Path = ()) -> Iterator[Gene]:
        yield Gene(path, value.tag, self.choices, structural=True)
        yield from self._parts[value.tag].genes(value.value, (*path, value.tag))

    def choices(self, tag: str) -> tuple[str, ...]:
        """List what the gene that holds `tag` may hold: always the same tags."""
        return tuple(self._parts)

    def put(self, value: Case, path: Path, option: Any, fill: Fill) -> Case:
        if path:
            tag, *below_it = path
            assert tag == value.tag, "only the genes of the case taken exist"
            return Case(value.tag, self._parts[value.tag].put(value.value, tuple(below_it), option, fill))
        return value if option == value.tag else Case(option, fill(self._parts[option], ()))

    def crossover(self, first: Case, second: Case, rng: Generator) -> Case:
        if first.tag != second.tag:
            return (first, second)[below(rng, 2)]
        return Case(first.tag, self._parts[first.tag].crossover(first.value, second.value, rng))

    @cached_property
    def width(self) -> int:
        return len(self.cases) + sum(part.width for _, part in self.cases)

    def write(self, value: Case, vector: Vector) -> None:
        index = list(self._parts).index(value.tag)
        vector[index] = 1.0
        self._parts[value.tag].write(value.value, self._block(vector, index))

    def decode(self, vector: Vector) -> Case:
        index = int(np.argmax(vector[: len(self.cases)]))
        tag, part = self.cases[index]
        return Case(tag, part.decode(self._block(vector, index)))

    def to_json(self, value: Case) -> Any:
        return {value.tag: self._parts[value.tag].to_json(value.value)}

    def from_json(self, data: object, where: Path, faults: list[Fault]) -> Any:
        if not isinstance(data, dict) or len(data) != 1:
            return wrong(where, f"is {data!r}; expected an object with one key of {', '.join(self._parts)}", faults)
        ((tag, inner),) = data.items()
        if tag not in self._parts:
            return wrong(where, f"has case {tag!r}; allowed: {', '.join(self._parts)}", faults)
        return Case(tag, self._parts[tag].from_json(inner, (*where, tag), faults))

    def _block(self, vector: Vector, index: int) -> Vector:
        start = len(self.cases) + sum(part.width for _, part in self.cases[:index])
        return vector[start : start + self.cases[index][1].width]
