"""The part: what every combinator of a space knows how to do, and nothing more.

Moves that change one gene are not here: `moves` derives them from `genes` and `put`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.errors import Fault
from formwright.space.gene import Gene, Path, show_path

V = TypeVar("V", bound=Hashable)
Vector: TypeAlias = NDArray[np.float64]
By: TypeAlias = Literal["design", "gene"]


class Fill(Protocol):
    """Supply the value of a part that a changed gene has just made active."""

    def __call__(self, part: Part[Any], kept: tuple[Any, ...]) -> Any:
        """Return a value of `part`; `kept` are the values of the same part already in place before it."""


class Part(ABC, Generic[V]):
    """Describe a set of values by structure; a part is itself an immutable value."""

    def count(self) -> int:
        """Count the values exactly, without listing them."""
        return self._total

    @property
    @abstractmethod
    def _total(self) -> int: ...

    @abstractmethod
    def sample(self, rng: Generator, by: By = "design") -> V:
        """Draw a value: uniformly over all of them, or `by="gene"` each gene uniformly given the genes above it."""

    @abstractmethod
    def contains(self, value: object) -> bool:
        """Tell whether this is one of the values."""

    @abstractmethod
    def enumerate(self) -> Iterator[V]:
        """List every value once, lazily, always in the same order; the first has every gene at its first option."""

    @abstractmethod
    def genes(self, value: V, path: Path = ()) -> Iterator[Gene]:
        """List the active genes, a gene before the genes below it; `path` leads to this part."""

    @abstractmethod
    def put(self, value: V, path: Path, option: Any, fill: Fill) -> V:
        """Return the value with one gene changed; `fill` supplies what becomes active, the rest stays."""

    @abstractmethod
    def crossover(self, first: V, second: V, rng: Generator) -> V:
        """Mix two values gene by gene."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Return the length of every encoded value."""

    @abstractmethod
    def write(self, value: V, vector: Vector) -> None:
        """Write a value into a vector of zeros of this part's width."""

    @abstractmethod
    def decode(self, vector: Vector) -> V:
        """Read the value whose encoding a vector of this part's width holds; in each block the largest entry wins."""

    @abstractmethod
    def to_json(self, value: V) -> Any:
        """Return the value as JSON data."""

    @abstractmethod
    def from_json(self, data: object, where: Path, faults: list[Fault]) -> Any:
        """Read a value from JSON data; what is returned is a value only if no fault was added to `faults`."""

    def encode(self, value: V) -> Vector:
        """Return the value as a vector of fixed width: one-hot per choice, inactive genes all zero."""
        vector = np.zeros(self.width)
        self.write(value, vector)
        return vector


def enumerate_product(parts: Sequence[Part[Any]]) -> Iterator[tuple[Any, ...]]:
    """List every tuple of one value per part, lazily; `itertools.product` would first list each part in memory."""
    if not parts:
        yield ()
        return
    for head in parts[0].enumerate():
        for rest in enumerate_product(parts[1:]):
            yield (head, *rest)


def wrong(where: Path, what: str, faults: list[Fault]) -> None:
    """Note one fault of JSON data."""
    faults.append(Fault(show_path(where), what))
