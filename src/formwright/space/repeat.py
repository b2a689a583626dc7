"""A repeated part: the same part several times, its members tied in groups if wanted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator

from formwright.core.errors import Fault, IllegalInput
from formwright.space.draw import below, weighted
from formwright.space.gene import Gene, Path
from formwright.space.part import By, Fill, Part, Vector, enumerate_product, wrong

Groups: TypeAlias = tuple[Any, ...]
_MOST_SHARED = 10_000


@dataclass(frozen=True)
class Repeat(Part[Groups]):
    """Repeat a part `times` times, or as often as one of several allowed lengths says.

    Consecutive groups of `tied` members share one value, and only that one is stored: a value has one entry per group.
    `members` expands it. The length is a gene where more than one is allowed.
    """

    part: Part[Any]
    times: int | tuple[int, ...]
    tied: int = 1

    def __post_init__(self) -> None:
        if self.tied < 1:
            raise IllegalInput(f"a group has at least one member, not {self.tied}")
        if not self.lengths or len(set(self.lengths)) < len(self.lengths):
            raise IllegalInput(f"lengths must be distinct and at least one, not {self.lengths}")
        for length in self.lengths:
            if length < 0 or length % self.tied:
                raise IllegalInput(f"length {length} is not a multiple of the group size {self.tied}")

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """List the allowed numbers of members."""
        return (self.times,) if isinstance(self.times, int) else self.times

    def members(self, value: Groups) -> Groups:
        """Expand the stored groups to one value per member."""
        return tuple(group for group in value for _ in range(self.tied))

    @cached_property
    def _weights(self) -> tuple[int, ...]:
        return tuple(self.part.count() ** (length // self.tied) for length in self.lengths)

    @cached_property
    def _total(self) -> int:
        return sum(self._weights)

    def sample(self, rng: Generator, by: By = "design") -> Groups:
        index = weighted(rng, self._weights) if by == "design" else below(rng, len(self.lengths))
        return tuple(self.part.sample(rng, by) for _ in range(self.lengths[index] // self.tied))

    def contains(self, value: object) -> bool:
        return (
            isinstance(value, tuple)
            and len(value) * self.tied in self.lengths
            and all(self.part.contains(group) for group in value)
        )

    def enumerate(self) -> Iterator[Groups]:
        # a short list of members is made once, so that designs share them; a long one is never held in memory
        members = tuple(self.part.enumerate()) if self.part.count() <= _MOST_SHARED else None
        for length in self.lengths:
            groups = length // self.tied
            yield from product(members, repeat=groups) if members else enumerate_product([self.part] * groups)

    def genes(self, value: Groups, path: Path = ()) -> Iterator[Gene]:
        if len(self.lengths) > 1:
            yield Gene(path, len(value) * self.tied, self.choices, structural=True)
        for index, group in enumerate(value):
            yield from self.part.genes(group, (*path, index))

    def choices(self, length: int) -> tuple[int, ...]:
        """List what the gene that holds `length` may hold: always the same lengths."""
        return self.lengths

    def put(self, value: Groups, path: Path, option: Any, fill: Fill) -> Groups:
        if path:
            index, *below_it = path
            assert isinstance(index, int), "the members of a repeated part are numbered"
            return (*value[:index], self.part.put(value[index], tuple(below_it), option, fill), *value[index + 1 :])
        groups = value[: option // self.tied]
        while len(groups) * self.tied < option:
            groups = (*groups, fill(self.part, groups))
        return groups

    def crossover(self, first: Groups, second: Groups, rng: Generator) -> Groups:
        length = len((first, second)[below(rng, 2)])
        shared = min(length, len(first), len(second))
        longer = max(first, second, key=len)
        mixed = (self.part.crossover(*pair, rng) for pair in zip(first[:shared], second[:shared], strict=True))
        return (*mixed, *longer[shared:length])

    @cached_property
    def width(self) -> int:
        return self._head + max(self.lengths) // self.tied * self.part.width

    @property
    def _head(self) -> int:
        return len(self.lengths) if len(self.lengths) > 1 else 0

    def write(self, value: Groups, vector: Vector) -> None:
        if self._head:
            vector[self.lengths.index(len(value) * self.tied)] = 1.0
        for group, block in zip(value, self._blocks(vector), strict=False):
            self.part.write(group, block)

    def decode(self, vector: Vector) -> Groups:
        length = self.lengths[int(np.argmax(vector[: self._head])) if self._head else 0]
        return tuple(self.part.decode(block) for block in self._blocks(vector)[: length // self.tied])

    def to_json(self, value: Groups) -> Any:
        return [self.part.to_json(group) for group in value]

    def from_json(self, data: object, where: Path, faults: list[Fault]) -> Any:
        if not isinstance(data, list):
            return wrong(where, f"is {data!r}; expected a list", faults)
        if len(data) * self.tied not in self.lengths:
            allowed = ", ".join(str(length // self.tied) for length in self.lengths)
            wrong(where, f"has {len(data)} entries; allowed: {allowed}", faults)
        return tuple(self.part.from_json(entry, (*where, index), faults) for index, entry in enumerate(data))

    def _blocks(self, vector: Vector) -> list[Vector]:
        step, most = self.part.width, max(self.lengths) // self.tied
        return [vector[self._head + index * step : self._head + (index + 1) * step] for index in range(most)]
