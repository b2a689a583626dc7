"""Lists of members: a part repeated (`Repeat`), or one part for each group of members (`Row`)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.random import Generator

from formwright.core.errors import Fault, IllegalInput
from formwright.space.design import (
    By,
    Combinator,
    Fill,
    Gene,
    Line,
    Path,
    Ties,
    Vector,
    below,
    blocks,
    enumerate_product,
    weighted,
    wrong,
)

Members: TypeAlias = tuple[Any, ...]
_MOST_SHARED = 10_000


class _Sequence(Combinator[Members]):
    """A list in groups of `tied` members that hold one value, its head; group n takes it from `_parts[n]`.

    The length is a gene where more than one is allowed; encodings then start with a one-hot of it.
    """

    OWN: ClassVar[str] = ".length"
    lengths: tuple[int, ...]
    tied: int
    _step: int  # entries of a stored value for each group

    @property
    @abstractmethod
    def _parts(self) -> tuple[Combinator[Any], ...]: ...

    @abstractmethod
    def _stored(self, heads: Members, length: int) -> Members: ...

    @abstractmethod
    def _length(self, value: Members) -> int: ...

    def _check(self) -> None:
        if self.tied < 1:
            raise IllegalInput(f"a group has at least one member, not {self.tied}")
        if not self.lengths or len(set(self.lengths)) < len(self.lengths) or min(self.lengths) < 0:
            raise IllegalInput(f"lengths must be distinct, at least one and not negative, not {self.lengths}")

    def _groups(self, length: int) -> int:
        return -(-length // self.tied)

    def _heads(self, value: Members) -> Members:
        return value[:: self._step]

    @cached_property
    def _weights(self) -> tuple[int, ...]:  # the number of values of each length
        return tuple(math.prod(part.count() for part in self._parts[: self._groups(n)]) for n in self.lengths)

    @cached_property
    def _total(self) -> int:
        return sum(self._weights)

    def choices(self, length: int) -> tuple[int, ...]:
        return self.lengths

    def sample(self, rng: Generator, by: By = "design") -> Members:
        length = self.lengths[weighted(rng, self._weights) if by == "design" else below(rng, len(self.lengths))]
        return self._stored(tuple(part.sample(rng, by) for part in self._parts[: self._groups(length)]), length)

    def contains(self, value: object) -> bool:
        if not isinstance(value, tuple) or self._length(value) not in self.lengths:
            return False
        heads = self._heads(value)
        held = all(part.contains(head) for part, head in zip(self._parts, heads, strict=False))
        return held and value == self._stored(heads, len(value))

    def enumerate(self) -> Iterator[Members]:
        # short lists of values are made once, so that designs share them; a long one is never held in memory
        short = all(part.count() <= _MOST_SHARED for part in set(self._parts))
        values = {part: tuple(part.enumerate()) for part in set(self._parts)} if short else {}
        for length in self.lengths:
            parts = self._parts[: self._groups(length)]
            for heads in product(*(values[part] for part in parts)) if short else enumerate_product(parts):
                yield self._stored(heads, length)

    def genes(self, value: Members, path: Path = ()) -> Iterator[Gene]:
        if self._head:
            yield Gene(path, self._length(value), self.choices, structural=True)
        for group, (part, head) in enumerate(zip(self._parts, self._heads(value), strict=False)):
            yield from part.genes(head, (*path, group * self._step))

    def put(self, value: Members, path: Path, option: Any, fill: Fill) -> Members:
        heads = self._heads(value)
        if path:
            index, *below_it = path
            assert isinstance(index, int), "the members of a list are numbered"
            group = index // self._step
            changed = self._parts[group].put(heads[group], tuple(below_it), option, fill)
            return self._stored((*heads[:group], changed, *heads[group + 1 :]), self._length(value))
        heads = heads[: self._groups(option)]
        for part in self._parts[len(heads) : self._groups(option)]:
            # members before it may be copied only if they are values of this part too
            heads = (*heads, fill(part, tuple(filter(part.contains, heads))))
        return self._stored(heads, option)

    def crossover(self, first: Members, second: Members, rng: Generator) -> Members:
        length = self._length((first, second)[below(rng, 2)])
        pairs = zip(self._parts, self._heads(first), self._heads(second), strict=False)
        mixed = [part.crossover(one, other, rng) for part, one, other in pairs]
        longer = self._heads(max(first, second, key=len))
        return self._stored((*mixed, *longer[len(mixed) : self._groups(length)]), length)

    @property
    def own_options(self) -> tuple[int, ...]:
        return self.lengths

    def inner_parts(self, option: Any = None) -> list[tuple[str, Combinator[Any]]]:
        active = self._parts if option is None else self._parts[: self._groups(option)]
        return [(f"[{index}]", part) for index, part in enumerate(active)]

    def split(self, value: Members) -> tuple[Any, tuple[Any, ...]]:
        return self._length(value), self._heads(value)

    def join(self, option: Any, values: Sequence[Any]) -> Members:
        return self._stored(tuple(values), option)

    @property
    def _head(self) -> int:
        return len(self.lengths) if len(self.lengths) > 1 else 0

    @cached_property
    def width(self) -> int:
        return self._head + sum(part.width for part in self._parts)

    def write(self, value: Members, vector: Vector) -> None:
        if self._head:
            vector[self.lengths.index(self._length(value))] = 1.0
        for part, block, head in zip(self._parts, self._blocks(vector), self._heads(value), strict=False):
            part.write(head, block)

    def decode(self, vector: Vector) -> Members:
        length = self.lengths[int(np.argmax(vector[: self._head])) if self._head else 0]
        parts = self._parts[: self._groups(length)]
        heads = tuple(part.decode(block) for part, block in zip(parts, self._blocks(vector), strict=False))
        return self._stored(heads, length)

    def to_json(self, value: Members) -> Any:
        heads = [part.to_json(head) for part, head in zip(self._parts, self._heads(value), strict=False)]
        return list(self._stored(tuple(heads), self._length(value)))

    def _blocks(self, vector: Vector) -> Iterator[Vector]:
        return blocks(self._parts, vector[self._head :])

    def from_json(self, data: object, where: Path, faults: list[Fault]) -> Any:
        if not isinstance(data, list):
            return wrong(where, f"is {data!r}; expected a list", faults)
        before = len(faults)
        if self._length(tuple(data)) not in self.lengths:
            allowed = ", ".join(str(length * self._step // self.tied) for length in self.lengths)
            wrong(where, f"has {len(data)} entries; allowed: {allowed}", faults)
        last = len(self._parts) - 1  # entries that are too many are read like those of the last group
        members = tuple(
            self._parts[min(index // self._step, last)].from_json(entry, (*where, index), faults)
            for index, entry in enumerate(data if self._parts else ())
        )
        if len(faults) == before and members != self._stored(self._heads(members), self._length(members)):
            wrong(where, f"has entries that differ within a group of {self.tied}", faults)
        return members


@dataclass(frozen=True)
class Repeat(_Sequence):
    """Repeat a part `times` times, or as often as one of several allowed lengths says.

    Consecutive groups of `tied` members share one value, and only that one is stored: a value has one entry per group.
    The length is a gene where more than one is allowed.
    """

    part: Combinator[Any]
    times: int | tuple[int, ...]
    tied: int = 1
    _step = 1

    def __post_init__(self) -> None:
        self._check()
        for length in self.lengths:
            if length % self.tied:
                raise IllegalInput(f"length {length} is not a multiple of the group size {self.tied}")

    @cached_property
    def lengths(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.times,) if isinstance(self.times, int) else self.times

    @cached_property
    def _parts(self) -> tuple[Combinator[Any], ...]:
        return (self.part,) * self._groups(max(self.lengths))

    def rebuilt(self, options: tuple[Any, ...], parts: Sequence[Combinator[Any]]) -> Repeat:
        return Repeat(parts[0] if parts else self.part, options, self.tied)

    def narrow(self, ties: Ties, values: Sequence[Members], name: str = "", *, inner: bool = False) -> Row:
        """Restrict the members to those of given values: at the same place, or in an inner list at all places."""
        entries = [length // self.tied for length in self.lengths]
        lengths = tuple(length for length in entries if not values or length in set(map(len, values)))
        tied = ties.get(name, 1)
        if tied < 1:
            raise IllegalInput(f"a group of {name} has at least one entry, not {tied}")
        parts = []
        for start in range(0, max(lengths), tied):
            held = [entry for value in values for entry in (value if inner else value[start : start + tied])]
            parts.append(self.part.narrow(ties, held, name, inner=True))
        return Row(tuple(parts), lengths, tied)

    def outline(self, where: str = "") -> Iterator[Line]:
        remark = f"in groups of {self.tied} that share a choice" if self.tied > 1 else ""
        if len(self.lengths) > 1 or remark:
            yield Line(f"{where}{self.OWN}", self.lengths, remark)
        yield from self.part.outline(f"{where}[0..{len(self._parts) - 1}]") if self._parts else ()

    def _stored(self, heads: Members, length: int) -> Members:
        return heads

    def _length(self, value: Members) -> int:
        return len(value) * self.tied


@dataclass(frozen=True)
class Row(_Sequence):
    """Hold as many members as one of several allowed `lengths` says; each group of `tied` members holds one value.

    Group n takes its value from `parts[n]`; the last group is shorter where `tied` does not divide the length. Unlike
    those of a `Repeat`, values have one entry per member, equal ones in a group: so a row may hold some of the values
    that a freer row, or a `Repeat` of single members, holds. The length is a gene where more than one is allowed.
    """

    parts: tuple[Combinator[Any], ...]
    lengths: tuple[int, ...]
    tied: int = 1

    def __post_init__(self) -> None:
        self._check()
        most, needed = max(self.lengths), self._groups(max(self.lengths))
        if needed != len(self.parts):
            raise IllegalInput(f"{most} members in groups of {self.tied} need {needed} parts, not {len(self.parts)}")

    def rebuilt(self, options: tuple[Any, ...], parts: Sequence[Combinator[Any]]) -> Row:
        return Row(tuple(parts), options, self.tied)

    def _nearest(self, value: Any) -> Members:
        """Fit each group to the first member at its place, or else to the last member."""
        length = min(self.lengths, key=lambda length: abs(length - len(value)))
        heads = [
            part.nearest(value[min(group * self.tied, len(value) - 1)]) if value else next(part.enumerate())
            for group, part in enumerate(self._parts)
        ]
        return self._stored(tuple(heads), length)

    @property
    def _step(self) -> int:  # type: ignore[override]
        return self.tied

    @property
    def _parts(self) -> tuple[Combinator[Any], ...]:
        return self.parts

    def _stored(self, heads: Members, length: int) -> Members:
        return tuple(heads[index // self.tied] for index in range(length))

    def _length(self, value: Members) -> int:
        return len(value)
