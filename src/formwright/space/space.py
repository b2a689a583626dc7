"""A space: a tree of parts, and the way from one of its designs to a card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from formwright.core.errors import BuildFailed, Fault, FormwrightError, IllegalDesign, IllegalInput, NotCountable
from formwright.space import moves
from formwright.space.constraint import Constraint, Estimate, estimate_share
from formwright.space.gene import Gene
from formwright.space.part import By, Part, Vector

if TYPE_CHECKING:
    from formwright.arch.card import Card

TRIES = 1_000
MOST_LISTED = 1_000_000
_SHOWN = 200  # letters of a design in a message


@dataclass(frozen=True)
class Space:
    """Say what may be built: the designs of `root` whose cards, made by `build`, pass every constraint of `where`.

    Designs are nested immutable values. Random moves need an explicit generator: same generator state, same result.
    """

    name: str
    root: Part[Any]
    build: Callable[[Any], Card]
    about: str = ""
    where: tuple[Constraint, ...] = ()

    def restrict(self, name: str, predicate: Callable[[Card], bool]) -> Space:
        """Return this space with one more constraint on its cards."""
        return replace(self, where=(*self.where, Constraint(name, predicate)))

    def sample(self, rng: Generator, by: By = "design") -> Any:
        """Draw a design: exactly uniformly, or `by="gene"` each gene uniformly given the genes above it."""
        if by not in get_args(By):
            raise IllegalInput(f"cannot sample by {by!r}; sample by {' or '.join(map(repr, get_args(By)))}")
        return self._retry("sample", lambda: self.root.sample(rng, by))

    def mutate(self, design: Any, rng: Generator) -> Any:
        """Change exactly one gene of a design; genes that the change makes active are drawn."""
        return self._retry("mutate", lambda: moves.mutate(self.root, design, rng))

    def crossover(self, a: Any, b: Any, rng: Generator) -> Any:
        """Mix two designs: every gene that both have comes from either; op graphs exchange subterms."""
        return self._retry("crossover", lambda: self.root.crossover(a, b, rng))

    def neighbours(self, design: Any) -> Iterator[Any]:
        """List every design of the space that is one gene away, each once, always in the same order."""
        return filter(self._allowed, moves.neighbours(self.root, design))

    def contains(self, design: object) -> bool:
        """Tell whether a value is a design of this space, constraints included."""
        return self.root.contains(design) and self._allowed(design)

    def enumerate(self) -> Iterator[Any]:
        """List every design once, lazily, always in the same order."""
        return filter(self._allowed, self.root.enumerate())

    def count(self) -> int:
        """Count the designs exactly; under a constraint by listing, which raises `NotCountable` beyond a million."""
        if not self.where:
            return self.root.count()
        if self.root.count() > MOST_LISTED:
            raise NotCountable(
                f"space {self.name!r} is constrained ({self._names()}) and has {self.root.count():,} designs "
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
        """List the active genes of a design: where each sits, what it holds and what it may hold."""
        return list(self.root.genes(design))

    def card(self, design: Any) -> Card:
        """Build the card of a design of this space; raise `BuildFailed` where `build` raises what is no refusal."""
        try:
            return self.build(design)
        except FormwrightError:
            raise
        except Exception as error:  # whatever a space of the user's own does wrong
            shown = repr(design)
            shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
            told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise BuildFailed(f"the `build` of space {self.name!r} failed for the design {shown}: {told}") from error

    @property
    def width(self) -> int:
        """Return the length of every encoded design."""
        return self.root.width

    def encode(self, design: Any) -> Vector:
        """Return a design as a vector of fixed width: one-hot per choice, inactive genes all zero."""
        return self.root.encode(design)

    def decode(self, vector: ArrayLike) -> Any:
        """Read a design from a vector; in each one-hot block the largest entry wins."""
        array = np.asarray(vector, dtype=np.float64)
        if array.shape != (self.width,):
            raise IllegalInput(f"space {self.name!r} decodes vectors of shape ({self.width},), not {array.shape}")
        return self.root.decode(array)

    def to_json(self, design: Any) -> Any:
        """Return a design as JSON data."""
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

    def _names(self) -> str:
        return ", ".join(constraint.name for constraint in self.where)

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
