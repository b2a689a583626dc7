"""A choice: one gene with a fixed list of options."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator

from formwright.core.errors import Fault, IllegalInput
from formwright.space.draw import below
from formwright.space.gene import Gene, Path
from formwright.space.part import By, Fill, Part, Vector, wrong

Scalar: TypeAlias = str | int | float | bool | None
Option: TypeAlias = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True)
class Choice(Part[Option]):
    """Choose one of several distinct options, each a JSON scalar or a tuple of JSON scalars."""

    options: tuple[Option, ...]

    def __post_init__(self) -> None:
        if not self.options:
            raise IllegalInput("a choice needs at least one option")
        for option in self.options:
            if not _is_option(option):
                raise IllegalInput(f"option {option!r} is neither a JSON scalar nor a tuple of JSON scalars")
        if len(set(self.options)) < len(self.options):
            raise IllegalInput(f"options must be distinct, these are not: {self.options!r}")

    @cached_property
    def _total(self) -> int:
        return len(self.options)

    def sample(self, rng: Generator, by: By = "design") -> Option:
        return self.options[below(rng, len(self.options))]

    def contains(self, value: object) -> bool:
        return self._index(value) is not None

    def enumerate(self) -> Iterator[Option]:
        return iter(self.options)

    def genes(self, value: Option, path: Path = ()) -> Iterator[Gene]:
        yield Gene(path, value, self.choices)

    def choices(self, value: Option) -> tuple[Option, ...]:
        """List what the gene that holds `value` may hold: always the same options."""
        return self.options

    def put(self, value: Option, path: Path, option: Any, fill: Fill) -> Option:
        assert not path, "a choice has no gene below it"
        return self.options[self.options.index(option)]

    def crossover(self, first: Option, second: Option, rng: Generator) -> Option:
        return (first, second)[below(rng, 2)]

    @property
    def width(self) -> int:
        return len(self.options)

    def write(self, value: Option, vector: Vector) -> None:
        vector[self.options.index(value)] = 1.0

    def decode(self, vector: Vector) -> Option:
        return self.options[int(np.argmax(vector))]

    def to_json(self, value: Option) -> Any:
        return list(value) if isinstance(value, tuple) else value

    def from_json(self, data: object, where: Path, faults: list[Fault]) -> Any:
        index = self._index(tuple(data) if isinstance(data, list) else data)
        if index is None:
            allowed = ", ".join(repr(self.to_json(option)) for option in self.options)
            return wrong(where, f"is {data!r}; allowed: {allowed}", faults)
        return self.options[index]

    def _index(self, value: object) -> int | None:
        return next((index for index, option in enumerate(self.options) if _same(option, value)), None)


def _is_option(option: object) -> bool:
    return all(map(_is_scalar, option)) if isinstance(option, tuple) else _is_scalar(option)


def _is_scalar(option: object) -> bool:
    # JSON writes neither infinities nor "not a number"
    return math.isfinite(option) if isinstance(option, float) else option is None or isinstance(option, str | int)


def _same(option: object, value: object) -> bool:
    # Python holds True == 1, JSON does not
    if isinstance(option, tuple) and isinstance(value, tuple):
        return len(option) == len(value) and all(map(_same, option, value))
    return option == value and isinstance(option, bool) == isinstance(value, bool)
