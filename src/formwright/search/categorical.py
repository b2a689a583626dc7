"""A space as a list of categorical variables (slots), for samplers that know nothing of spaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.space import Case, Choice, Combinator, Fields, Record, Repeat, Switch
from formwright.space.narrow import Within, brought_into
from formwright.space.repeat import Row


@dataclass(frozen=True)
class Slot:
    """A categorical variable with `options` values, numbered from 0; `ordered` where neighbouring numbers are alike."""

    name: str
    options: int
    ordered: bool


Choose = Callable[[Slot], int]


def slots(part: Combinator[Any], name: str = "") -> Iterator[Slot]:
    """List every slot that a design can have, in a fixed order; raise `IllegalInput` where a part has no such list."""
    if (head := _head(part, name)) is not None:
        yield head
    match part:
        case Choice():
            return
        case Record(fields):
            for field, inner in fields:
                yield from slots(inner, f"{name}.{field}")
        case Repeat(member):
            for index in range(max(part.lengths) // part.tied):
                yield from slots(member, f"{name}[{index}]")
        case Switch(cases):
            for tag, inner in cases:
                yield from slots(inner, f"{name}={tag}")
        case Row(parts):
            for index, inner in enumerate(parts):
                yield from slots(inner, f"{name}[{index}]")
        case Within(_, inner):
            yield from slots(inner, name)
        case _:
            raise IllegalInput(
                f"this searcher cannot search {type(part).__name__} ({name.strip('.')}), whose designs are no list of "
                "choices; take one that mutates, such as 'regularized-evolution'"
            )


def compose(part: Combinator[Any], choose: Choose, name: str = "") -> Any:
    """Build a value of a part from the options that `choose` takes in its active slots."""
    head = _head(part, name)
    taken = 0 if head is None else choose(head)
    match part:
        case Choice(options):
            return options[taken]
        case Record(fields):
            return Fields(tuple((field, compose(inner, choose, f"{name}.{field}")) for field, inner in fields))
        case Repeat(member):
            groups = range(part.lengths[taken] // part.tied)
            return tuple(compose(member, choose, f"{name}[{index}]") for index in groups)
        case Switch(cases):
            tag, inner = cases[taken]
            return Case(tag, compose(inner, choose, f"{name}={tag}"))
        case Row(parts, lengths, tied):
            needed = -(-lengths[taken] // tied)
            heads = [compose(inner, choose, f"{name}[{index}]") for index, inner in enumerate(parts[:needed])]
            return tuple(heads[index // tied] for index in range(lengths[taken]))
        case Within(_, inner):
            return compose(inner, choose, name)
    raise AssertionError(f"{part} has no slots")


def decompose(part: Combinator[Any], value: Any, name: str = "") -> Iterator[tuple[Slot, int]]:
    """List the active slots of a value with the option taken in each."""
    head = _head(part, name)
    if head is not None:
        yield head, _taken(part, value)
    match part:
        case Record(fields):
            for field, inner in fields:
                yield from decompose(inner, value[field], f"{name}.{field}")
        case Repeat(member):
            for index, group in enumerate(value):
                yield from decompose(member, group, f"{name}[{index}]")
        case Switch(cases):
            yield from decompose(dict(cases)[value.tag], value.value, f"{name}={value.tag}")
        case Row(parts, _, tied):
            for index, (inner, group) in enumerate(zip(parts, value[::tied], strict=False)):
                yield from decompose(inner, group, f"{name}[{index}]")
        case Within(_, inner):  # values outside the part are replaced, as its moves do
            yield from decompose(inner, brought_into(inner, value), name)


def _head(part: Combinator[Any], name: str) -> Slot | None:
    """Return the slot of the part itself, if it has one with something to choose."""
    match part:
        case Choice(options):
            slot = Slot(name, len(options), _ascending(options))
        case Repeat() | Row():
            slot = Slot(f"{name}.length", len(part.lengths), _ascending(part.lengths))
        case Switch(cases):
            slot = Slot(name, len(cases), ordered=False)
        case _:
            return None
    return slot if slot.options > 1 else None


def _taken(part: Combinator[Any], value: Any) -> int:
    match part:
        case Choice(options):
            return options.index(value)
        case Repeat():
            return part.lengths.index(len(value) * part.tied)
        case Row(_, lengths):
            return lengths.index(len(value))
        case Switch(cases):
            return [tag for tag, _ in cases].index(value.tag)
    raise AssertionError(f"{part} has no slot of its own")


def _ascending(options: tuple[Any, ...]) -> bool:
    numbers = all(isinstance(option, int | float) and not isinstance(option, bool) for option in options)
    return numbers and len(options) > 2 and list(options) in (sorted(options), sorted(options, reverse=True))
