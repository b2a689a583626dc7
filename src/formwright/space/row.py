"""A row: members one after another, each from a part of its own, in groups that are equal if wanted."""

from __future__ import annotations

import math
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

Members: TypeAlias = tuple[Any, ...]
_MOST_SHARED = 10_000


@dataclass(frozen=True)
class Row(Part[Members]):
    """Hold as many members as one of several allowed `lengths` says; each group of `tied` members holds one value.

    Group n takes its value from `parts[n]`; the last group is shorter where `tied` does not divide the length. Unlike
    those of a `Repeat`, values have one entry per member, equal ones in a group: so a row may hold some of the values
    that a freer row, or a `Repeat` of single members, holds. The length is a gene where more than one is allowed.
    """

    parts: tuple[Part[Any], ...]
    lengths: tuple[int, ...]
    tied: int = 1

    def __post_init__(self) -> None:
        if self.tied < 1:
            raise IllegalInput(f"a group has at least one member, not {self.tied}")
        if not self.lengths or len(set(self.lengths)) < len(self.lengths) or min(self.lengths) < 0:
            raise IllegalInput(f"lengths must be distinct, at least one and not negative, not {self.lengths}")
        most, needed = max(self.lengths), self._groups(max(self.lengths))
        if needed != len(self.parts):
            raise IllegalInput(f"{most} members in groups of {self.tied} need {needed} parts, not {len(self.parts)}")

    def _groups(self, length: int) -> int:
        return -(-length // self.tied)

    def _heads(self, value: Members) -> Members:
        """Give one member of each group."""
        return value[:: self.tied]

    def _whole(self, heads: Members, length: int) -> Members:
        return tuple(heads[index // self.tied] for index in range(length))

    @cached_property
    def _weights(self) -> tuple[int, ...]:
        return tuple(math.prod(part.count() for part in self.parts[: self._groups(n)]) for n in self.lengths)

    @cached_property
    def _total(self) -> int:
        return sum(self._weights)

    def sample(self, rng: Generator, by: By = "design") -> Members:
        length = self.lengths[weighted(rng, self._weights) if by == "design" else below(rng, len(self.lengths))]
        return self._whole(tuple(part.sample(rng, by) for part in self.parts[: self._groups(length)]), length)

    def contains(self, value: object) -> bool:
        if not isinstance(value, tuple) or len(value) not in self.lengths:
            return False
        heads = self._heads(value)
        held = all(part.contains(head) for part, head in zip(self.parts, heads, strict=False))
        return held and value == self._whole(heads, len(value))

    def enumerate(self) -> Iterator[Members]:
        # short lists of values are made once, so that designs share them; a long one is never held in memory
        short = all(part.count() <= _MOST_SHARED for part in self.parts)
        values = [tuple(part.enumerate()) for part in self.parts] if short else []
        for length in self.lengths:
            groups = self._groups(length)
            for heads in product(*values[:groups]) if short else enumerate_product(self.parts[:groups]):
                yield self._whole(heads, length)

    def genes(self, value: Members, path: Path = ()) -> Iterator[Gene]:
        if self._head:
            yield Gene(path, len(value), self.choices, structural=True)
        for group, (part, head) in enumerate(zip(self.parts, self._heads(value), strict=False)):
            yield from part.genes(head, (*path, group * self.tied))

    def choices(self, length: int) -> tuple[int, ...]:
        """List what the gene that holds `length` may hold: always the same lengths."""
        return self.lengths

    def put(self, value: Members, path: Path, option: Any, fill: Fill) -> Members:
        heads = self._heads(value)
        if path:
            index, *below_it = path
            assert isinstance(index, int), "the members of a row are numbered"
            group = index // self.tied
            changed = self.parts[group].put(heads[group], tuple(below_it), option, fill)
            return self._whole((*heads[:group], changed, *heads[group + 1 :]), len(value))
        heads = heads[: self._groups(option)]
        for part in self.parts[len(heads) : self._groups(option)]:
            # what stands before may be copied only where it is a value of this part too
            heads = (*heads, fill(part, tuple(filter(part.contains, heads))))
        return self._whole(heads, option)

    def crossover(self, first: Members, second: Members, rng: Generator) -> Members:
        length = len((first, second)[below(rng, 2)])
        pairs = zip(self.parts, self._heads(first), self._heads(second), strict=False)
        mixed = [part.crossover(one, other, rng) for part, one, other in pairs]
        longer = self._heads(max(first, second, key=len))
        return self._whole((*mixed, *longer[len(mixed) :]), length)

    @cached_property
    def width(self) -> int:
        return self._head + sum(part.width for part in self.parts)

    @property
    def _head(self) -> int:
        return len(self.lengths) if len(self.lengths) > 1 else 0

    def write(self, value: Members, vector: Vector) -> None:
        if self._head:
            vector[self.lengths.index(len(value))] = 1.0
        for (part, block), head in zip(self._blocks(vector), self._heads(value), strict=False):
            part.write(head, block)

    def decode(self, vector: Vector) -> Members:
        length = self.lengths[int(np.argmax(vector[: self._head])) if self._head else 0]
        blocks = list(self._blocks(vector))[: self._groups(length)]
        return self._whole(tuple(part.decode(block) for part, block in blocks), length)

    def to_json(self, value: Members) -> Any:
        groups = [part.to_json(head) for part, head in zip(self.parts, self._heads(value), strict=False)]
        return list(self._whole(tuple(groups), len(value)))

    def from_json(self, data: object, where: Path, faults: list[Fault]) -> Any:
        if not isinstance(data, list):
            return wrong(where, f"is {data!r}; expected a list", faults)
        if len(data) not in self.lengths:
            return wrong(where, f"has {len(data)} entries; allowed: {', '.join(map(str, self.lengths))}", faults)
        before = len(faults)
        members = tuple(
            self.parts[index // self.tied].from_json(entry, (*where, index), faults) for index, entry in enumerate(data)
        )
        if len(faults) == before and members != self._whole(self._heads(members), len(members)):
            wrong(where, f"has entries that differ within a group of {self.tied}", faults)
        return members

    def _blocks(self, vector: Vector) -> Iterator[tuple[Part[Any], Vector]]:
        start = self._head
        for part in self.parts:
            yield part, vector[start : start + part.width]
            start += part.width
