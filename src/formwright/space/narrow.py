"""The structure of a space: its outline, its lists, and its subspaces.

A subspace ties members of lists together, or keeps only the choices that some designs make.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.random import Generator

from formwright.core.errors import Fault, IllegalInput, UnknownName
from formwright.space.combinators import Choice, Record, Switch
from formwright.space.design import By, Case, Combinator, Fields, Fill, Gene, Path, Vector, wrong
from formwright.space.expression import Expressions
from formwright.space.repeat import Repeat, Row
from formwright.space.space import Space

Ties = Mapping[str, int]


@dataclass(frozen=True)
class Within(Combinator[Any]):
    """The values of `whole` that `part` contains.

    Encodings and JSON are those of the whole, so that values of several subspaces can be compared. Moves may start from
    any value of the whole and lead to values of the part: what the part does not contain is replaced first.
    """

    whole: Combinator[Any]
    part: Combinator[Any]

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
            return wrong(where, "is outside the searched part of the space", faults)
        return value


def brought_into(part: Combinator[Any], value: Any) -> Any:
    """Return the nearest value of a part: what the part does not contain becomes its first option."""
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


def _members(parts: tuple[Combinator[Any], ...], length: int, tied: int, value: tuple[Any, ...]) -> tuple[Any, ...]:
    """Fit each group to the first member at its place, or else to the last member."""
    heads = [
        brought_into(part, value[min(group * tied, len(value) - 1)]) if value else next(part.enumerate())
        for group, part in enumerate(parts)
    ]
    return tuple(heads[index // tied] for index in range(length))


@dataclass(frozen=True)
class ListOf:
    """A repeated part: its name, as in `layers.feed_forward`, its nesting depth, and its largest number of entries."""

    name: str
    inside: int
    most: int


def lists_of(part: Combinator[Any], name: str = "", inside: int = 0) -> Iterator[ListOf]:
    """List the repeated parts of a space, outer ones first."""
    match part:
        case Repeat(member):
            yield ListOf(name, inside, max(part.lengths) // part.tied)
            yield from lists_of(member, name, inside + 1)
        case Record(inner) | Switch(inner):
            for key, below in inner:
                yield from lists_of(below, f"{name}.{key}" if name else key, inside)


def narrowed(space: Space, name: str, ties: Ties, designs: Sequence[Any] = ()) -> Space:
    """Return the subspace, called `name`, of designs that keep the ties and use only the choices of given designs.

    `ties` says of how many equal entries each group of a repeated part consists, by the part's name; entries of others
    are free. Every choice may take what it holds in one of the `designs`, independently of all other choices: the space
    is the product of their choices. Entries of an outer list are compared at the same place; those of a list inside it
    at all places. Formulas stay as free as they were. Without designs, every choice is as free as it was.

    Designs of the new space are designs of the old one, and mean the same.
    """
    known = {found.name for found in lists_of(space.root)}
    for unknown in ties.keys() - known:
        raise UnknownName(f"list of space {space.name!r}", unknown, sorted(known))
    root = Within(space.root, _narrow(space.root, ties, tuple(designs)))
    return Space(name, root, space.build, space.about, space.where)


def _narrow(
    part: Combinator[Any], ties: Ties, values: Sequence[Any], name: str = "", inner: bool = False
) -> Combinator[Any]:
    """Restrict a part to the values given; an `inner` part is inside a list."""
    match part:
        case Choice(options) if values:
            return Choice(tuple(option for option in options if any(map(Choice((option,)).contains, values))))
        case Record(fields):
            return Record(
                tuple(
                    (key, _narrow(below, ties, [value[key] for value in values], f"{name}.{key}".strip("."), inner))
                    for key, below in fields
                )
            )
        case Switch(cases):
            return Switch(tuple(_cases(cases, ties, values, name, inner)))
        case Repeat():
            return _row(part, ties, values, name, inner)
        case _:
            return part


def _cases(
    cases: Sequence[tuple[str, Combinator[Any]]], ties: Ties, values: Sequence[Case], name: str, inner: bool
) -> Iterator[tuple[str, Combinator[Any]]]:
    for tag, below in cases:
        held = [value.value for value in values if value.tag == tag]
        if held or not values:
            yield tag, _narrow(below, ties, held, f"{name}.{tag}".strip("."), inner)


def _row(part: Repeat, ties: Ties, values: Sequence[tuple[Any, ...]], name: str, inner: bool) -> Row:
    entries = [length // part.tied for length in part.lengths]
    lengths = tuple(length for length in entries if not values or length in set(map(len, values)))
    tied = ties.get(name, 1)
    if tied < 1:
        raise IllegalInput(f"a group of {name} has at least one entry, not {tied}")
    parts = []
    for start in range(0, max(lengths), tied):
        held = [entry for value in values for entry in (value if inner else value[start : start + tied])]
        parts.append(_narrow(part.part, ties, held, name, inner=True))
    return Row(tuple(parts), lengths, tied)


@dataclass(frozen=True)
class Line:
    """One gene: its place, and its options as JSON values, or a remark if there are too many to list."""

    where: str
    options: tuple[Any, ...]
    remark: str = ""


def outline(part: Combinator[Any], where: str = "") -> Iterator[Line]:
    """List the genes of a space in order; genes of a case exist only if that case is taken."""
    match part:
        case Choice(options):
            yield Line(where, options)
        case Record(fields):
            for name, field in fields:
                yield from outline(field, f"{where}.{name}" if where else name)
        case Repeat(member):
            remark = f"in groups of {part.tied} that share a choice" if part.tied > 1 else ""
            if len(part.lengths) > 1 or remark:
                yield Line(f"{where}.length", part.lengths, remark)
            groups = max(part.lengths) // part.tied
            yield from outline(member, f"{where}[0..{groups - 1}]") if groups else ()
        case Switch(cases):
            yield Line(where, tuple(tag for tag, _ in cases))
            for tag, case in cases:
                yield from outline(case, f"{where}={tag}")
        case Expressions(largest, least, most):
            remark = f"{part.count():,} formulas of up to {largest} operations over {least} to {most} inputs"
            yield Line(where, (), remark)
        case _:
            yield Line(where, (), f"{part.count():,} values")
