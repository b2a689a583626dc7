"""Smaller spaces within a space: members of lists tied together, and nothing but what some designs are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from formwright.core.errors import IllegalInput, nearest
from formwright.space.choice import Choice
from formwright.space.part import Part
from formwright.space.record import Record
from formwright.space.repeat import Repeat
from formwright.space.row import Row
from formwright.space.space import Space
from formwright.space.switch import Switch
from formwright.space.value import Case
from formwright.space.within import Within

Ties = Mapping[str, int]


@dataclass(frozen=True)
class ListOf:
    """Name a repeated part, as in `layers.feed_forward`, how many it lies inside of, and the most entries it has."""

    name: str
    inside: int
    most: int


def lists_of(part: Part[Any], name: str = "", inside: int = 0) -> Iterator[ListOf]:
    """List the repeated parts of a space, an outer one before those inside it."""
    match part:
        case Repeat(member):
            yield ListOf(name, inside, max(part.lengths) // part.tied)
            yield from lists_of(member, name, inside + 1)
        case Record(inner) | Switch(inner):
            for key, below in inner:
                yield from lists_of(below, f"{name}.{key}" if name else key, inside)


def narrowed(space: Space, name: str, ties: Ties, designs: Sequence[Any] = ()) -> Space:
    """Return the space, called `name`, of those designs of a space that keep the ties and are made of given designs.

    `ties` says of how many equal entries each group of a repeated part consists, by the part's name; entries of others
    are free. Every choice may take what it holds in one of the `designs`, independently of all other choices: the space
    is the product of their choices. Entries of an outer list are compared at the same place; those of a list inside it
    at all places. Formulas stay as free as they were. Without designs, every choice is as free as it was.

    Designs of the new space are designs of the old one, and mean the same.
    """
    known = {found.name for found in lists_of(space.root)}
    for unknown in ties.keys() - known:
        close = nearest(unknown, sorted(known))
        hint = f" Nearest: {close[0]!r}." if close else ""
        raise IllegalInput(
            f"no list of space {space.name!r} is called {unknown!r}.{hint} It has: {', '.join(sorted(known)) or 'none'}"
        )
    root = Within(space.root, _narrow(space.root, ties, tuple(designs)))
    return Space(name, root, space.build, space.about, space.where)


def _narrow(part: Part[Any], ties: Ties, values: Sequence[Any], name: str = "", inner: bool = False) -> Part[Any]:
    """Narrow a part to what stands in values of it; an `inner` part lies inside a list."""
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
    cases: Sequence[tuple[str, Part[Any]]], ties: Ties, values: Sequence[Case], name: str, inner: bool
) -> Iterator[tuple[str, Part[Any]]]:
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
