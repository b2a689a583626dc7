"""The interface of every combinator of a space, with the values, genes and random draws that combinators share.

Designs are immutable, hashable and picklable, so equal designs are one design. A design is a scalar or a tuple of
scalars (from a `Choice`), a `Fields` (from a `Record`), a tuple (from a `Repeat` or a `Row`), a `Case` (from a
`Switch`) or a term (from an `Expressions`). `space.space` derives moves that change one gene from `genes` and `put`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.errors import Fault
from formwright.core.remember import remembers

Path: TypeAlias = tuple[str | int, ...]
_WORD = 2**63  # the largest bound numpy draws in one step
V = TypeVar("V", bound=Hashable)
Vector: TypeAlias = NDArray[np.float64]
By: TypeAlias = Literal["design", "gene"]
Ties: TypeAlias = Mapping[str, int]  # of how many equal entries a group of a list consists, by its name


@remembers
@dataclass(frozen=True, repr=False)
class Fields(Mapping[str, Any]):
    """Hold named values in a fixed order; read one as `value.heads` or `value["heads"]`."""

    pairs: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, **values: Any) -> Fields:
        return cls(tuple(values.items()))

    def __getitem__(self, name: str) -> Any:
        for key, value in self.pairs:
            if key == name:
                return value
        raise KeyError(name)

    def __getattr__(self, name: str) -> Any:
        if name == "pairs":  # absent while a copy is being made; looking for it here would never end
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no field {name!r}; fields are {', '.join(self)}") from None

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        return f"Fields({', '.join(f'{key}={value!r}' for key, value in self.pairs)})"


@remembers
@dataclass(frozen=True)
class Case:
    """The tag and the value of the case that a `Switch` took."""

    tag: str
    value: Any


@dataclass(frozen=True, slots=True)
class Gene:
    """Name one active gene of a design: where it sits, what it holds and, on demand, what it may hold.

    A gene is `structural` where other genes come and go with what it holds.
    """

    path: Path
    value: Any
    choices: Callable[[Any], tuple[Any, ...]] = field(repr=False)
    structural: bool = False

    @property
    def options(self) -> tuple[Any, ...]:
        """List every value this gene may take, including its present one."""
        return self.choices(self.value)

    @property
    def name(self) -> str:
        return show_path(self.path)


def show_path(path: Path) -> str:
    """Format a path, such as `layers[1].mixer`; the root is empty."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def below(rng: Generator, bound: int) -> int:
    """Draw an integer uniformly from 0 to `bound` - 1; `bound` may exceed every machine word."""
    assert bound > 0, "there is no integer to draw"
    if bound <= _WORD:
        return int(rng.integers(bound))
    bits = (bound - 1).bit_length()
    excess = -bits % 8
    while True:  # a draw is rejected with probability below one half
        drawn = int.from_bytes(rng.bytes((bits + excess) // 8), "little") >> excess
        if drawn < bound:
            return drawn


def weighted(rng: Generator, weights: Sequence[int]) -> int:
    """Draw an index with probability exactly proportional to its integer weight."""
    return pick(rng, list(accumulate(weights)))


def pick(rng: Generator, ends: Sequence[int]) -> int:
    """Draw an index as `weighted` does, from the running totals of the weights."""
    return bisect_right(ends, below(rng, ends[-1]))


@dataclass(frozen=True)
class Line:
    """One gene: its place, and its options as JSON values, or a remark if there are too many to list."""

    where: str
    options: tuple[Any, ...]
    remark: str = ""


class Fill(Protocol):
    """Supply the value of a part that has just become active."""

    def __call__(self, part: Combinator[Any], kept: tuple[Any, ...]) -> Any:
        """Return a value of `part`; `kept` are the values of the same part that precede it."""


class Combinator(ABC, Generic[V]):
    """Describe a set of values by structure; a combinator is itself an immutable value."""

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
        """Return whether this is one of the values."""

    @abstractmethod
    def enumerate(self) -> Iterator[V]:
        """List every value once, lazily, always in the same order; the first has every gene at its first option."""

    @abstractmethod
    def genes(self, value: V, path: Path = ()) -> Iterator[Gene]:
        """List the active genes, a gene before the genes below it; `path` leads to this part."""

    @abstractmethod
    def put(self, value: V, path: Path, option: Any, fill: Fill) -> V:
        """Return the value with one gene changed; `fill` supplies genes that become active."""

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
        """Decode a vector of this part's width; in each block the largest entry wins."""

    @abstractmethod
    def to_json(self, value: V) -> Any:
        """Return the value as JSON data."""

    @abstractmethod
    def from_json(self, data: object, where: Path, faults: list[Fault]) -> Any:
        """Read a value from JSON data; the result is valid only if nothing was added to `faults`."""

    OWN: ClassVar[str] = ""  # what stands behind a part's name where its own choice is named

    @property
    def own_options(self) -> tuple[Any, ...] | None:
        """List what the part itself chooses between: options, tags or lengths.

        Empty where only the parts inside it choose; None where its values are no list of choices.
        """
        return None

    def inner_parts(self, option: Any = None) -> Sequence[tuple[str, Combinator[Any]]]:
        """List the parts inside that are active with one of the own options, or all of them.

        Each comes with what stands behind the name of this part in its own: `.field`, `=tag` or `[0]`.
        """
        return ()

    def split(self, value: V) -> tuple[Any, tuple[Any, ...]]:
        """Return the own option that a value takes, and the values of the parts that are active with it."""
        return None, ()

    def join(self, option: Any, values: Sequence[Any]) -> V:
        """Build a value of an own option and values of the parts that are active with it."""
        raise TypeError(f"{type(self).__name__} has no parts")

    def rebuilt(self, options: tuple[Any, ...], parts: Sequence[Combinator[Any]]) -> Combinator[Any]:
        """Return the combinator with some of its own options, and other parts in place of all of its own."""
        return self

    def nearest(self, value: Any) -> V:
        """Return the nearest value of this part: what it does not contain becomes its first option."""
        return value if self.contains(value) else self._nearest(value)

    def _nearest(self, value: Any) -> V:
        return next(self.enumerate())

    def narrow(self, ties: Ties, values: Sequence[V], name: str = "", *, inner: bool = False) -> Combinator[Any]:
        """Restrict the part to the choices of given values, and its lists to ties; an `inner` part is in a list."""
        return self

    def outline(self, where: str = "") -> Iterator[Line]:
        """List the genes in order; genes of a case exist only if that case is taken."""
        yield Line(where, (), f"{self.count():,} values")

    def encode(self, value: V) -> Vector:
        """Return the value as a vector of fixed width: one-hot per choice, inactive genes all zero."""
        vector = np.zeros(self.width)
        self.write(value, vector)
        return vector


def enumerate_product(parts: Sequence[Combinator[Any]]) -> Iterator[tuple[Any, ...]]:
    """List every tuple of one value per part, lazily; `itertools.product` would first list each part in memory."""
    if not parts:
        yield ()
        return
    for head in parts[0].enumerate():
        for rest in enumerate_product(parts[1:]):
            yield (head, *rest)


def blocks(parts: Sequence[Combinator[Any]], vector: Vector) -> Iterator[Vector]:
    """Divide a vector into consecutive views, one as wide as each part."""
    start = 0
    for part in parts:
        yield vector[start : start + part.width]
        start += part.width


def wrong(where: Path, what: str, faults: list[Fault]) -> None:
    faults.append(Fault(show_path(where), what))
