"""Subspaces, and the lists of a space.

A subspace ties members of lists together, or keeps only the choices that some designs make.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.random import Generator

from formwright.core.errors import Fault, UnknownName
from formwright.space.design import By, Combinator, Fill, Gene, Path, Ties, Vector, wrong
from formwright.space.repeat import Repeat
from formwright.space.space import Space


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
        return self.part.genes(self.part.nearest(value), path)

    def put(self, value: Any, path: Path, option: Any, fill: Fill) -> Any:
        return self.part.put(self.part.nearest(value), path, option, fill)

    def crossover(self, first: Any, second: Any, rng: Generator) -> Any:
        return self.part.crossover(self.part.nearest(first), self.part.nearest(second), rng)

    @property
    def width(self) -> int:
        return self.whole.width

    def write(self, value: Any, vector: Vector) -> None:
        self.whole.write(value, vector)

    def decode(self, vector: Vector) -> Any:
        return self.part.nearest(self.whole.decode(vector))

    def to_json(self, value: Any) -> Any:
        return self.whole.to_json(value)

    own_options = ()

    def inner_parts(self, option: Any = None) -> list[tuple[str, Combinator[Any]]]:
        return [("", self.part)]

    def split(self, value: Any) -> tuple[Any, tuple[Any, ...]]:
        return None, (self.part.nearest(value),)

    def join(self, option: Any, values: Sequence[Any]) -> Any:
        return values[0]

    def rebuilt(self, options: tuple[Any, ...], parts: Sequence[Combinator[Any]]) -> Combinator[Any]:
        return parts[0]

    def from_json(self, data: object, where: Path, faults: list[Fault]) -> Any:
        before = len(faults)
        value = self.whole.from_json(data, where, faults)
        if len(faults) == before and not self.part.contains(value):
            return wrong(where, "is outside the searched part of the space", faults)
        return value


@dataclass(frozen=True)
class ListOf:
    """A repeated part: its name, as in `layers.feed_forward`, its nesting depth, and its largest number of entries."""

    name: str
    inside: int
    most: int


def lists_of(part: Combinator[Any], name: str = "", inside: int = 0) -> Iterator[ListOf]:
    """List the repeated parts of a space, outer ones first."""
    if isinstance(part, Repeat):
        yield ListOf(name, inside, max(part.lengths) // part.tied)
        yield from lists_of(part.part, name, inside + 1)
        return
    for step, below in part.inner_parts():
        if not step.startswith("["):  # members of a row have no list in common
            yield from lists_of(below, f"{name}.{step[1:]}".strip("."), inside)


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
    root = Within(space.root, space.root.narrow(ties, tuple(designs)))
    return Space(name, root, space.build, space.about, space.where)
