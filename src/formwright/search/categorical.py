"""A space as a list of categorical variables (slots), for samplers that know nothing of spaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.space import Combinator


@dataclass(frozen=True)
class Slot:
    """A categorical variable with `options` values, numbered from 0; `ordered` where neighbouring numbers are alike."""

    name: str
    options: int
    ordered: bool


Choose = Callable[[Slot], int]


def slots(part: Combinator[Any], name: str = "") -> Iterator[Slot]:
    """List every slot that a design can have, in a fixed order; raise `IllegalInput` where a part has no such list."""
    if part.own_options is None:
        raise IllegalInput(
            f"this searcher cannot search {type(part).__name__} ({name.strip('.')}), whose designs are no list of "
            "choices; take one that mutates, such as 'regularized-evolution'"
        )
    yield from _own_slot(part, name)
    for step, inner in part.inner_parts():
        yield from slots(inner, name + step)


def compose(part: Combinator[Any], choose: Choose, name: str = "") -> Any:
    """Build a value of a part from the options that `choose` takes in its active slots."""
    taken = next(map(choose, _own_slot(part, name)), 0)
    option = part.own_options[taken] if part.own_options else None
    return part.join(option, [compose(inner, choose, name + step) for step, inner in part.inner_parts(option)])


def decompose(part: Combinator[Any], value: Any, name: str = "") -> Iterator[tuple[Slot, int]]:
    """List the active slots of a value with the option taken in each."""
    option, values = part.split(value)
    for slot in _own_slot(part, name):
        yield slot, (part.own_options or ()).index(option)
    for (step, inner), held in zip(part.inner_parts(option), values, strict=True):
        yield from decompose(inner, held, name + step)


def _own_slot(part: Combinator[Any], name: str) -> Iterator[Slot]:
    """Yield the slot of the part itself, if it has something to choose."""
    options = part.own_options or ()
    if len(options) > 1:
        yield Slot(name + part.OWN, len(options), _ascending(options))


def _ascending(options: tuple[Any, ...]) -> bool:
    numbers = all(isinstance(option, int | float) and not isinstance(option, bool) for option in options)
    return numbers and len(options) > 2 and list(options) in (sorted(options), sorted(options, reverse=True))
