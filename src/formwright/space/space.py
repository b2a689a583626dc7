"""A space: a tree of parts, constraints, and the function that builds the card of a design."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from formwright.core.errors import BuildFailed, Fault, FormwrightError, IllegalDesign, IllegalInput, NotCountable
from formwright.core.records import as_card
from formwright.space.design import By, Combinator, Gene, Vector, below

if TYPE_CHECKING:
    from formwright.arch.card import Card

_Z90 = 1.6448536269514722  # a standard normal lies within +-z with probability 90 %
TRIES = 1_000
MOST_LISTED = 1_000_000
_SHOWN = 200  # letters of a design in a message


@dataclass(frozen=True)
class Constraint:
    """Require that `holds(card)` is true; the name, such as `params<=5e6`, appears in messages.

    A `lasting` one holds also where others are lifted for a while: no weights are there for designs that break it.
    """

    name: str
    holds: Callable[[Card], bool]
    lasting: bool = False


class Estimate(NamedTuple):
    """An estimated number of designs with its 90 % interval."""

    estimate: int
    low: int
    high: int


def estimate_share(total: int, hits: int, samples: int) -> Estimate:
    """Estimate how many of `total` designs satisfy a condition that `hits` of `samples` do (Wilson's interval)."""
    share = hits / samples
    spread = _Z90**2 / samples
    centre = (share + spread / 2) / (1 + spread)
    half = sqrt(spread * (share * (1 - share) + spread / 4)) / (1 + spread)
    high = 1.0 if hits == samples else centre + half  # rounding must not exceed the total
    # fractions, because totals beyond the largest float are common
    return Estimate(*(round(Fraction(part) * total) for part in (share, centre - half, high)))


def mutate(part: Combinator[Any], value: Any, rng: Generator) -> Any:
    """Change one gene: each gene that has another option is equally likely, and so is each other option.

    Genes that the change makes active are drawn uniformly over their designs.
    """
    genes = list(part.genes(value))
    # the first mutable gene of a random order is uniform among the mutable ones, and few genes compute their options
    for index in rng.permutation(len(genes)):
        gene = genes[index]
        others = [option for option in gene.options if option != gene.value]
        if others:
            option = others[below(rng, len(others))]
            return part.put(value, gene.path, option, lambda appeared, kept: appeared.sample(rng))
    raise IllegalInput("this design cannot be mutated: no gene has another option")


def neighbours(part: Combinator[Any], value: Any) -> Iterator[Any]:
    """List every design one gene away, each once, always in the same order."""
    for gene in part.genes(value):
        yield from variants(part, value, gene)


def variants(part: Combinator[Any], value: Any, gene: Gene) -> Iterator[Any]:
    """List every design that has another option of one gene.

    Genes that a change makes active take their first option; members that a longer repetition adds copy the last one.
    """
    for option in gene.options:
        if option != gene.value:
            yield part.put(value, gene.path, option, lambda new, kept: kept[-1] if kept else next(new.enumerate()))


@dataclass(frozen=True)
class Space:
    """A search space: the designs of `root` whose cards, made by `build`, satisfy every constraint of `where`.

    Designs are nested immutable values. Random moves need an explicit generator: same generator state, same result.
    """

    name: str
    root: Combinator[Any]
    build: Callable[[Any], Card]
    about: str = ""
    where: tuple[Constraint, ...] = ()

    def restrict(self, name: str, predicate: Callable[[Card], bool], *, lasting: bool = False) -> Space:
        """Return this space with one more constraint on its cards."""
        return replace(self, where=(*self.where, Constraint(name, predicate, lasting)))

    def sample(self, rng: Generator, by: By = "design") -> Any:
        """Draw a design: exactly uniformly, or `by="gene"` each gene uniformly given the genes above it."""
        if by not in get_args(By):
            raise IllegalInput(f"cannot sample by {by!r}; sample by {' or '.join(map(repr, get_args(By)))}")
        return self._retry("sample", lambda: self.root.sample(rng, by))

    def mutate(self, design: Any, rng: Generator) -> Any:
        """Change exactly one gene of a design; genes that the change makes active are drawn."""
        return self._retry("mutate", lambda: mutate(self.root, design, rng))

    def crossover(self, a: Any, b: Any, rng: Generator) -> Any:
        """Mix two designs: every gene that both have comes from one of them; op graphs exchange subterms."""
        return self._retry("crossover", lambda: self.root.crossover(a, b, rng))

    def neighbours(self, design: Any) -> Iterator[Any]:
        return filter(self._allowed, neighbours(self.root, design))

    def variants(self, design: Any, gene: Gene) -> Iterator[Any]:
        """List the designs that differ from one in one of its genes."""
        return filter(self._allowed, variants(self.root, design, gene))

    def contains(self, design: object) -> bool:
        return self.root.contains(design) and self._allowed(design)

    def enumerate(self) -> Iterator[Any]:
        return filter(self._allowed, self.root.enumerate())

    def count(self) -> int:
        """Count the designs exactly; with constraints by listing, which raises `NotCountable` beyond a million."""
        if not self.where:
            return self.root.count()
        if self.root.count() > MOST_LISTED:
            names = ", ".join(constraint.name for constraint in self.where)
            raise NotCountable(
                f"space {self.name!r} is constrained ({names}) and has {self.root.count():,} designs "
                f"otherwise; at most {MOST_LISTED:,} are counted one by one. Call estimate_count(rng, samples) instead"
            )
        return sum(1 for _ in self.enumerate())

    def estimate_count(self, rng: Generator, samples: int = 1_000) -> Estimate:
        """Estimate the number of designs, with a 90 % interval, from uniform samples of the unconstrained space."""
        if samples < 1:
            raise IllegalInput(f"an estimate needs at least one sample, not {samples}")
        if not self.where:
            return Estimate(*[self.root.count()] * 3)
        hits = sum(self._allowed(self.root.sample(rng)) for _ in range(samples))
        return estimate_share(self.root.count(), hits, samples)

    def genes(self, design: Any) -> list[Gene]:
        return list(self.root.genes(design))

    def card(self, design: Any) -> Card:
        """Build the card of a design; raise `BuildFailed` if `build` raises an unexpected error."""
        try:
            return as_card(self.build(design))  # type: ignore[return-value]
        except FormwrightError:
            raise
        except Exception as error:  # a user's `build` may raise anything
            shown = repr(design)
            shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
            cause = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise BuildFailed(f"the `build` of space {self.name!r} failed for the design {shown}: {cause}") from error

    @property
    def width(self) -> int:
        return self.root.width

    def encode(self, design: Any) -> Vector:
        return self.root.encode(design)

    def decode(self, vector: ArrayLike) -> Any:
        """Read a design from a vector; in each one-hot block the largest entry wins."""
        array = np.asarray(vector, dtype=np.float64)
        if array.shape != (self.width,):
            raise IllegalInput(f"space {self.name!r} decodes vectors of shape ({self.width},), not {array.shape}")
        return self.root.decode(array)

    def to_json(self, design: Any) -> Any:
        return self.root.to_json(design)

    def from_json(self, data: object) -> Any:
        """Read a design from JSON data; raise `IllegalDesign` that lists every fault and where it is."""
        faults: list[Fault] = []
        design = self.root.from_json(data, (), faults)
        if not faults:
            faults += [Fault("", f"breaks the constraint {broken.name}") for broken in self._broken(design)]
        if faults:
            raise IllegalDesign(faults, what=f"design of space {self.name!r}")
        return design

    def _broken(self, design: Any) -> list[Constraint]:
        if not self.where:
            return []
        card = self.card(design)
        return [constraint for constraint in self.where if not constraint.holds(card)]

    def _allowed(self, design: Any) -> bool:
        return not self._broken(design)

    def _retry(self, action: str, draw: Callable[[], Any]) -> Any:
        failures: Counter[str] = Counter()
        for _ in range(TRIES):
            design = draw()
            broken = self._broken(design)
            if not broken:
                return design
            failures.update(constraint.name for constraint in broken)
        listed = ", ".join(f"{name} ({number} times)" for name, number in failures.most_common())
        raise IllegalInput(
            f"{action} found no allowed design of space {self.name!r} in {TRIES} tries; broken constraints: {listed}. "
            f"Loosen the constraint, or start from another design"
        )
