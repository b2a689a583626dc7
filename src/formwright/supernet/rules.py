"""Rules of sampling: which designs of a super-network learn at a step.

A rule is a part whose fields are its options. Bound to the ends of a space it gives the cards of a step, from a
generator that the seed of the training and the step alone decide.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.options import Part, option
from formwright.core.registry import Registry
from formwright.space.space import Space
from formwright.supernet.hull import LENGTH, Hull, choices_of, opened

Draw = Callable[[Generator, int], list[Card]]  # the cards of a step, of which there is at least one

_HERE = "formwright.supernet.rules"
RULES: Registry[Any] = Registry(
    "rule",
    {
        "largest": f"{_HERE}:Largest",
        "uniform": f"{_HERE}:Uniform",
        "sandwich": f"{_HERE}:Sandwich",
        "progressive-shrinking": f"{_HERE}:ProgressiveShrinking",
    },
    "formwright.rules",
)


class Rule(Part):
    """Be a rule of sampling; `LARGEST_FIRST` says that every step begins with the largest design."""

    LARGEST_FIRST: ClassVar[bool] = False

    @classmethod
    def registry(cls) -> Registry[Any]:
        """Give the registry of rules."""
        return RULES

    def bind(self, hull: Hull, steps: int) -> Draw:
        """Give what draws the cards of a step, in a training of `steps` steps."""
        raise TypeError(f"{type(self).__name__} draws nothing")

    def work(self, middle: float, smallest: float) -> float:
        """Give what a step takes, as times the largest design; `middle` is that of a random one."""
        return 1.0


@dataclass(frozen=True)
class Largest(Rule):
    """Train the largest design alone: the teacher of a once-for-all network (OFA, section 3.3, "full network")."""

    NAME: ClassVar[str] = "largest"
    LARGEST_FIRST: ClassVar[bool] = True

    def bind(self, hull: Hull, steps: int) -> Draw:
        return lambda rng, step: [hull.largest]


@dataclass(frozen=True)
class Uniform(Rule):
    """Train one design a step, each choice drawn uniformly (SPOS, Guo et al. 2020, Eq. 5 and section 3.1).

    The weights minimise the expected loss over designs a ~ U(A), W_A = argmin_W E_a [L(N(a, W(a)))], so that no design
    is preferred before the search. AutoFormer trains its entangled weights by the same rule.
    """

    NAME: ClassVar[str] = "uniform"
    designs: int = option(1, "designs of a step")
    by: Literal["gene", "design"] = option("gene", "draw each choice uniformly, depth too, or all designs alike")

    def __post_init__(self) -> None:
        _check_designs(self.designs)

    def bind(self, hull: Hull, steps: int) -> Draw:
        return lambda rng, step: _sampled(hull.space, rng, self.designs, self.by)

    def work(self, middle: float, smallest: float) -> float:
        return self.designs * middle


@dataclass(frozen=True)
class Sandwich(Rule):
    """Train the largest design, the smallest and some between them (Yu and Huang 2019, section 3.1; EFTNAS)."""

    NAME: ClassVar[str] = "sandwich"
    LARGEST_FIRST: ClassVar[bool] = True
    between: int = option(1, "random designs of a step, besides the largest and the smallest")

    def __post_init__(self) -> None:
        if self.between < 0:
            raise IllegalInput(f"a step trains 0 or more designs between the ends, not {self.between}")

    def bind(self, hull: Hull, steps: int) -> Draw:
        return lambda rng, step: [hull.largest, *_sampled(hull.space, rng, self.between, "design"), hull.smallest]

    def work(self, middle: float, smallest: float) -> float:
        return 1 + self.between * middle + smallest


@dataclass(frozen=True)
class ProgressiveShrinking(Rule):
    """Open the choices one after another, each from its largest value down (OFA, Cai et al. 2020, section 3.3).

    The largest design is trained alone for the share `largest` of the steps. The rest is divided into phases: each
    allows one more value of one choice, while what was opened before stays open; every step draws from what is open. In
    the paper kernel sizes open first, then depth (4, then 3, then 2 layers), then width. Here `order` names the choices
    by their fields in the space, `length` being that of lists: depth. Choices that it leaves out follow in the order of
    the space. The phase that opens the last value of a choice is `last` times as long as those before: 120 and 25
    epochs in the authors' code. Phases are shares of the steps that are planned when the training begins.
    """

    NAME: ClassVar[str] = "progressive-shrinking"
    largest: float = option(0.25, "share of the steps that train the largest design alone")
    order: tuple[str, ...] = option((LENGTH,), "choices in the order in which they open, by field name; length: depth")
    designs: int = option(2, "designs of a step, once there is a choice")
    last: float = option(4.8, "how many times longer the last phase of a choice is than the phases before it")

    def __post_init__(self) -> None:
        _check_designs(self.designs)
        if not 0 <= self.largest < 1 or not 0 < self.last < math.inf:
            raise IllegalInput(
                f"largest is a share from 0 to less than 1, and last is above 0; not {self.largest} and {self.last}"
            )

    def phases(self, space: Space) -> list[tuple[float, Space]]:
        """List the share of the steps at which each phase ends, and what is open in it: in the last one, the space.

        Until then constraints of the space do not count: its largest designs may be beyond them.
        """
        counts: dict[str, int] = {}
        for name, many in choices_of(space.root):
            counts[name] = max(many, counts.get(name, 1))
        for name in self.order:
            if name not in counts and name != LENGTH:
                raise UnknownName(f"choice of space {space.name!r}", name, list(counts))
        now, free = dict.fromkeys(counts, 1), replace(space, where=())
        found = [(0.0, replace(free, root=opened(space.root, now)))]  # the largest design alone
        for name in dict.fromkeys((*self.order, *counts)):
            for many in range(2, counts.get(name, 1) + 1):
                now[name] = many
                length = self.last if many == counts[name] else 1.0
                found.append((length, replace(free, root=opened(space.root, now))))
        found[-1] = (found[-1][0], space)
        lengths = np.array([length for length, _ in found])
        ends = self.largest + (1 - self.largest) * np.cumsum(lengths) / max(lengths.sum(), 1.0)
        return [(float(end), phase) for end, (_, phase) in zip(ends, found, strict=True)]

    def bind(self, hull: Hull, steps: int) -> Draw:
        phases = self.phases(hull.space)

        def draw(rng: Generator, step: int) -> list[Card]:
            space = next((space for end, space in phases if step / steps < end), phases[-1][1])
            return _sampled(space, rng, 1 if space.root.count() == 1 else self.designs, "gene")

        return draw

    def work(self, middle: float, smallest: float) -> float:
        """Give what a step takes, in the mean over all phases."""
        return self.largest + (1 - self.largest) * self.designs * (1 + middle) / 2


def _check_designs(designs: int) -> None:
    if designs < 1:
        raise IllegalInput(f"a step trains at least 1 design, not {designs}")


def _sampled(space: Space, rng: Generator, number: int, by: Literal["gene", "design"]) -> list[Card]:
    return [space.card(space.sample(rng, by)) for _ in range(number)]
