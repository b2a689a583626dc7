"""Lists of members: a part repeated (`Repeat`), or one part for each group of members (`Row`)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator

from formwright.core.errors import Fault, IllegalInput
from formwright.space.part import By, Fill, Gene, Part, Path, Vector, below, enumerate_product, weighted, wrong

Groups: TypeAlias = tuple[Any, ...]
Members: TypeAlias = tuple[Any, ...]
_MOST_SHARED = 10_000


class _Sequence(Part[tuple[Any, ...]]):
    """A list whose length is a gene where more than one is allowed; encodings start with a one-hot of the length."""

    lengths: tuple[int, ...]

    @property
    @abstractmethod
    def _weights(self) -> tuple[int, ...]: ...  # the number of values of each length

    @cached_property
    def _total(self) -> int:
        return sum(self._weights)

    def choices(self, length: int) -> tuple[int, ...]:
        return self.lengths

    def _draw_length(self, rng: Generator, by: By) -> int:
        return self.lengths[weighted(rng, self._weights) if by == "design" else below(rng, len(self.lengths))]

    @property
    def _head(self) -> int:
        return len(self.lengths) if len(self.lengths) > 1 else 0

    def _write_length(self, length: int, vector: Vector) -> None:
        if self._head:
            vector[self.lengths.index(length)] = 1.0

    def _read_length(self, vector: Vector) -> int:
        return self.lengths[int(np.argmax(vector[: self._head])) if self._head else 0]


@dataclass(frozen=True)
class Repeat(_Sequence):
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
    def lengths(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.times,) if isinstance(self.times, int) else self.times

    def members(self, value: Groups) -> Groups:
        """Expand the stored groups to one value per member."""
        return tuple(group for group in value for _ in range(self.tied))

    @cached_property
    def _weights(self) -> tuple[int, ...]:
        return tuple(self.part.count() ** (length // self.tied) for length in self.lengths)

    def sample(self, rng: Generator, by: By = "design") -> Groups:
        return tuple(self.part.sample(rng, by) for _ in range(self._draw_length(rng, by) // self.tied))

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

    def write(self, value: Groups, vector: Vector) -> None:
        self._write_length(len(value) * self.tied, vector)
        for group, block in zip(value, self._blocks(vector), strict=False):
            self.part.write(group, block)

    def decode(self, vector: Vector) -> Groups:
        length = self._read_length(vector)
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


@dataclass(frozen=True)
class Row(_Sequence):
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
        return value[:: self.tied]

    def _whole(self, heads: Members, length: int) -> Members:
        return tuple(heads[index // self.tied] for index in range(length))

    @cached_property
    def _weights(self) -> tuple[int, ...]:
        return tuple(math.prod(part.count() for part in self.parts[: self._groups(n)]) for n in self.lengths)

    def sample(self, rng: Generator, by: By = "design") -> Members:
        length = self._draw_length(rng, by)
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
            # members before it may be copied only if they are values of this part too
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

    def write(self, value: Members, vector: Vector) -> None:
        self._write_length(len(value), vector)
        for (part, block), head in zip(self._blocks(vector), self._heads(value), strict=False):
            part.write(head, block)

    def decode(self, vector: Vector) -> Members:
        length = self._read_length(vector)
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
