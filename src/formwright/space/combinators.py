"""The basic combinators: a choice between options, a record of named parts, and a switch between cases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator

from formwright.core.checks import put
from formwright.core.errors import Fault, IllegalInput, nearest
from formwright.space.design import (
    By,
    Case,
    Combinator,
    Fields,
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

Scalar: TypeAlias = str | int | float | bool | None
Option: TypeAlias = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True)
class Choice(Combinator[Option]):
    """Choose one of several distinct options, each a JSON scalar or a tuple of JSON scalars."""

    options: tuple[Option, ...]

    def __post_init__(self) -> None:
        given: Any = self.options
        if not isinstance(given, Sequence) or isinstance(given, str) or not given:
            raise IllegalInput(f"a choice needs a list of options, such as Choice((64, 128)), not {given!r}")
        put(self, options=tuple(given))
        for option in self.options:
            if not all(map(_is_scalar, option if isinstance(option, tuple) else (option,))):
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

    @property
    def own_options(self) -> tuple[Option, ...]:
        return self.options

    def split(self, value: Option) -> tuple[Any, tuple[Any, ...]]:
        return value, ()

    def join(self, option: Any, values: Sequence[Any]) -> Option:
        return option  # type: ignore[no-any-return]

    def rebuilt(self, options: tuple[Any, ...], parts: Sequence[Combinator[Any]]) -> Choice:
        return Choice(options)

    def narrow(self, ties: Ties, values: Sequence[Option], name: str = "", *, inner: bool = False) -> Choice:
        held = (option for option in self.options if any(map(Choice((option,)).contains, values)))
        return Choice(tuple(held)) if values else self

    def outline(self, where: str = "") -> Iterator[Line]:
        yield Line(where, self.options)

    def _index(self, value: object) -> int | None:
        return next((index for index, option in enumerate(self.options) if _same(option, value)), None)


def _is_scalar(option: object) -> bool:
    # JSON has neither infinity nor NaN
    return math.isfinite(option) if isinstance(option, float) else option is None or isinstance(option, str | int)


def _same(option: object, value: object) -> bool:
    # True == 1 in Python, but not in JSON
    if isinstance(option, tuple) and isinstance(value, tuple):
        return len(option) == len(value) and all(map(_same, option, value))
    return option == value and isinstance(option, bool) == isinstance(value, bool)


def _check_named(kind: str, pairs: object) -> None:
    for pair in pairs if isinstance(pairs, tuple) else (pairs,):
        match pair:
            case (str(), Combinator()):
                continue
        way = f"give the parts by name, such as {kind}.of(width=Choice((64, 128)), layers=Repeat(...))"
        raise IllegalInput(f"a {kind} holds pairs of a name and a combinator, not {pair!r:.200}: {way}")


@dataclass(frozen=True)
class Record(Combinator[Fields]):
    """Combine named parts; `Record.of()`, without fields, has exactly one value and no gene."""

    fields: tuple[tuple[str, Combinator[Any]], ...]

    @classmethod
    def of(cls, **fields: Combinator[Any]) -> Record:
        return cls(tuple(fields.items()))

    def __post_init__(self) -> None:
        _check_named("Record", self.fields)
        names = [name for name, _ in self.fields]
        for name in names:
            if not name.isidentifier() or name.startswith("_") or hasattr(Fields.of(), name):
                raise IllegalInput(
                    f"{name!r} cannot name a field: it must be an identifier that is not a method's name"
                )
        if len(set(names)) < len(names):
            raise IllegalInput(f"field names must be distinct, these are not: {', '.join(names)}")

    @cached_property
    def _parts(self) -> dict[str, Combinator[Any]]:
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
        for (name, part), block in zip(self.fields, self._blocks(vector), strict=True):
            part.write(value[name], block)

    def decode(self, vector: Vector) -> Fields:
        parts = zip(self.fields, self._blocks(vector), strict=True)
        return Fields(tuple((name, part.decode(block)) for (name, part), block in parts))

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

    own_options = ()

    def inner_parts(self, option: Any = None) -> list[tuple[str, Combinator[Any]]]:
        return [(f".{name}", part) for name, part in self.fields]

    def split(self, value: Fields) -> tuple[Any, tuple[Any, ...]]:
        return None, tuple(value[name] for name in self._parts)

    def join(self, option: Any, values: Sequence[Any]) -> Fields:
        return Fields(tuple(zip(self._parts, values, strict=True)))

    def rebuilt(self, options: tuple[Any, ...], parts: Sequence[Combinator[Any]]) -> Record:
        return Record(tuple(zip(self._parts, parts, strict=True)))

    def _nearest(self, value: Any) -> Fields:
        return self.join(None, [part.nearest(value[name]) for name, part in self.fields])

    def narrow(self, ties: Ties, values: Sequence[Fields], name: str = "", *, inner: bool = False) -> Record:
        named = ((key, part, f"{name}.{key}".strip(".")) for key, part in self.fields)
        return self.rebuilt(
            (), [part.narrow(ties, [value[key] for value in values], where, inner=inner) for key, part, where in named]
        )

    def outline(self, where: str = "") -> Iterator[Line]:
        for name, part in self.fields:
            yield from part.outline(f"{where}.{name}".strip("."))

    def _blocks(self, vector: Vector) -> Iterator[Vector]:
        return blocks([part for _, part in self.fields], vector)


@dataclass(frozen=True)
class Switch(Combinator[Case]):
    """Take one of several tagged cases; only the genes of the case taken exist.

    A case without genes of its own is an empty record: `Switch.of(convolution=Choice((3, 5)), identity=Record.of())`.
    """

    cases: tuple[tuple[str, Combinator[Any]], ...]

    @classmethod
    def of(cls, **cases: Combinator[Any]) -> Switch:
        return cls(tuple(cases.items()))

    def __post_init__(self) -> None:
        _check_named("Switch", self.cases)
        if not self.cases or len(self._parts) < len(self.cases):
            raise IllegalInput(f"tags must be distinct and at least one, not {[tag for tag, _ in self.cases]}")

    @cached_property
    def _parts(self) -> dict[str, Combinator[Any]]:
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

    @property
    def own_options(self) -> tuple[str, ...]:
        return tuple(self._parts)

    def inner_parts(self, option: Any = None) -> list[tuple[str, Combinator[Any]]]:
        return [(f"={tag}", part) for tag, part in self.cases if option in (None, tag)]

    def split(self, value: Case) -> tuple[Any, tuple[Any, ...]]:
        return value.tag, (value.value,)

    def join(self, option: Any, values: Sequence[Any]) -> Case:
        return Case(option, values[0])

    def rebuilt(self, options: tuple[Any, ...], parts: Sequence[Combinator[Any]]) -> Switch:
        named = dict(zip(self._parts, parts, strict=True))
        return Switch(tuple((tag, named[tag]) for tag in options))

    def _nearest(self, value: Any) -> Case:
        if value.tag not in self._parts:
            return super()._nearest(value)
        return Case(value.tag, self._parts[value.tag].nearest(value.value))

    def narrow(self, ties: Ties, values: Sequence[Case], name: str = "", *, inner: bool = False) -> Switch:
        cases = []
        for tag, part in self.cases:
            held = [value.value for value in values if value.tag == tag]
            if held or not values:
                cases.append((tag, part.narrow(ties, held, f"{name}.{tag}".strip("."), inner=inner)))
        return Switch(tuple(cases))

    def outline(self, where: str = "") -> Iterator[Line]:
        yield Line(where, self.own_options)
        for tag, part in self.cases:
            yield from part.outline(f"{where}={tag}")

    def _block(self, vector: Vector, index: int) -> Vector:
        return list(blocks([part for _, part in self.cases], vector[len(self.cases) :]))[index]
