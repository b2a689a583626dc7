"""Rules of sampling: which designs of a super-network learn at a step.

A rule is a part whose fields are its options. Bound to the hull of a space it gives the cards of a step, from a
generator that the seed of the training and the step alone decide: a training that is resumed draws the same.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.options import Part, option
from formwright.core.registry import Registry
from formwright.core.rng import derive
from formwright.space.design import Combinator
from formwright.space.space import Space
from formwright.supernet.hull import Hull, ordered

LENGTH = "length"  # what the number of entries of a list is called among the choices
Draw = Callable[[Generator, int], list[Card]]  # the cards of a step, of which there is at least one
_BY = "how designs are drawn: gene = every choice uniformly, depth included; design = uniformly among all designs"


class SplitBatch(list[Card]):
    """Designs of a step that are shown a share of its rows each, in place of all."""


_HERE = "formwright.supernet.rules"
RULES: Registry[Any] = Registry(
    "rule",
    {
        "largest": f"{_HERE}:Largest",
        "uniform": f"{_HERE}:Uniform",
        "sandwich": f"{_HERE}:Sandwich",
        "progressive-shrinking": f"{_HERE}:ProgressiveShrinking",
        "walk": f"{_HERE}:Walk",
        "phases": f"{_HERE}:Phases",
    },
    "formwright.rules",
)


class Rule(Part):
    """Base class of sampling rules; `LARGEST_FIRST` says that every step begins with the largest design.

    `FOLLOWS_SHARE` says that what it draws depends on how much of the training is done. Where the plan of a training
    changes on the way, such a rule is given the equivalent step of the original plan, which may skip or repeat steps;
    others are given the step itself, whatever the lesson.
    """

    LARGEST_FIRST: ClassVar[bool] = False
    FOLLOWS_SHARE: ClassVar[bool] = True

    @classmethod
    def registry(cls) -> Registry[Any]:
        return RULES

    @property
    def switches(self) -> list[float]:
        """List the shares of the steps after which other designs are drawn, and the end; empty without such phases."""
        return []

    def bind(self, hull: Hull, steps: int, seed: int = 0) -> Draw:
        """Give what draws the cards of a step, in a training of `steps` steps.

        It is given a generator for the step. A rule whose steps depend on each other derives what it needs from `seed`.
        """
        raise NotImplementedError(f"{type(self).__name__}.bind")

    def work(self, middle: float, smallest: float) -> float:
        """Give what a step takes, as times the largest design; `middle` is that of a random one."""
        return 1.0


@dataclass(frozen=True)
class Largest(Rule):
    """Train the largest design alone: the teacher of a once-for-all network (OFA, section 3.3, "full network")."""

    NAME: ClassVar[str] = "largest"
    LARGEST_FIRST: ClassVar[bool] = True
    FOLLOWS_SHARE: ClassVar[bool] = False

    def bind(self, hull: Hull, steps: int, seed: int = 0) -> Draw:
        return lambda rng, step: [hull.largest]


@dataclass(frozen=True)
class Uniform(Rule):
    """Train one design a step, each choice drawn uniformly (SPOS, Guo et al. 2020, Eq. 5 and section 3.1).

    The weights minimise the expected loss over designs a ~ U(A), W_A = argmin_W E_a [L(N(a, W(a)))], so that no design
    is preferred before the search. AutoFormer trains its entangled weights by the same rule. With `rows=apart` every
    design sees rows of its own.
    """

    NAME: ClassVar[str] = "uniform"
    FOLLOWS_SHARE: ClassVar[bool] = False
    designs: int = option(1, "designs of a step", least=1)
    by: Literal["gene", "design"] = option("gene", _BY)
    rows: Literal["all", "apart"] = option(
        "all", "rows of a batch that each design sees: all, or an equal share (apart)"
    )

    def bind(self, hull: Hull, steps: int, seed: int = 0) -> Draw:
        shown: Callable[[list[Card]], list[Card]] = SplitBatch if self.rows == "apart" else list
        return lambda rng, step: shown(_sampled(hull.space, rng, self.designs, self.by))

    def work(self, middle: float, smallest: float) -> float:
        return middle if self.rows == "apart" else self.designs * middle


@dataclass(frozen=True)
class Sandwich(Rule):
    """Train the largest design, the smallest and some between them (Yu and Huang 2019, section 3.1; EFTNAS)."""

    NAME: ClassVar[str] = "sandwich"
    LARGEST_FIRST: ClassVar[bool] = True
    FOLLOWS_SHARE: ClassVar[bool] = False
    between: int = option(1, "random designs of a step, in addition to the largest and the smallest", least=0)
    by: Literal["gene", "design"] = option("design", _BY)

    def bind(self, hull: Hull, steps: int, seed: int = 0) -> Draw:
        return lambda rng, step: [hull.largest, *_sampled(hull.space, rng, self.between, self.by), hull.smallest]

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
    epochs in the authors' code. Phases are shares of the steps, also where their number changes on the way.
    """

    NAME: ClassVar[str] = "progressive-shrinking"
    largest: float = option(0.25, "share of the steps that train the largest design alone", least=0, most=1)
    order: tuple[str, ...] = option((LENGTH,), "choices in the order in which they open, by field name; length: depth")
    designs: int = option(2, "designs of a step, once there is a choice", least=1)
    last: float = option(
        4.8, "how many times longer the last phase of a choice is than the phases before it", least=0.01
    )

    @property
    def switches(self) -> list[float]:
        """List the shares of the steps after which smaller designs are drawn too, and the end.

        The phases between, in which one value after another opens, depend on the space.
        """
        return [self.largest, 1.0]

    def phases(self, space: Space) -> list[tuple[float, Space]]:
        """List the share of the steps at which each phase ends, and what is open in it: in the last one, the space.

        Until then constraints of the space do not count, as its largest designs may be beyond them, but for those
        without which a design has no weights.
        """
        counts = choices_of(space.root)
        for name in self.order:
            if name not in counts and name != LENGTH:
                raise UnknownName(f"choice of space {space.name!r}", name, list(counts))
        now, free = dict.fromkeys(counts, 1), replace(space, where=tuple(one for one in space.where if one.lasting))
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

    def bind(self, hull: Hull, steps: int, seed: int = 0) -> Draw:
        # rounded, as the switch of a lesson and the ends of `Phases` are: all change at the same step
        phases = [(round(end * steps), space) for end, space in self.phases(hull.space)]

        def draw(rng: Generator, step: int) -> list[Card]:
            space = next((space for end, space in phases if step < end), phases[-1][1])
            return _sampled(space, rng, 1 if space.root.count() == 1 else self.designs, "gene")

        return draw

    def work(self, middle: float, smallest: float) -> float:
        """Give what a step takes, in the mean over all phases."""
        return self.largest + (1 - self.largest) * self.designs * (1 + middle) / 2


@dataclass(frozen=True)
class Walk(Rule):
    """Train one design a step, which differs from that of the step before in one choice (MAGIC-T, Xu et al. 2022).

    The fewer choices differ, the less the gradients of two designs disturb each other. A walk hardly leaves its start
    in a short training, so it restarts at a random design every `restart` steps.
    """

    NAME: ClassVar[str] = "walk"
    FOLLOWS_SHARE: ClassVar[bool] = False  # it moves once a step, however many there are
    restart: int = option(50, "steps after which the walk restarts at a random design", least=1)

    def bind(self, hull: Hull, steps: int, seed: int = 0) -> Draw:
        known: dict[int, Any] = {}  # the design of the latest step; any step follows from the one the walk began at

        def draw(_: Generator, step: int) -> list[Card]:
            start = step - step % self.restart
            at = next((one for one in known if start <= one <= step), start)
            design = known[at] if at in known else hull.space.sample(derive(seed, "walk", start), "gene")
            for later in range(at + 1, step + 1):
                design = hull.space.mutate(design, derive(seed, "walk", later))
            known.clear()
            known[step] = design
            return [hull.space.card(design)]

        return draw

    def work(self, middle: float, smallest: float) -> float:
        return middle


@dataclass(frozen=True)
class Phases(Rule):
    """Follow several rules one after another, each for its share of the steps.

    The largest design, then all of them, are the two stages of LightHuBERT (Wang et al. 2022).
    """

    NAME: ClassVar[str] = "phases"
    rules: tuple[Rule, ...] = option((Largest(), Uniform()), "the rules, in their order")
    shares: tuple[float, ...] = option((0.5, 0.5), "the share of the steps that each rule has")

    def __post_init__(self) -> None:
        proper = all(0 < share < math.inf for share in self.shares)
        if not self.rules or len(self.rules) != len(self.shares) or not proper:
            raise IllegalInput(
                f"phases need at least one rule, and a finite share above 0 for each; {len(self.rules)} rules and the "
                f"shares {', '.join(map(str, self.shares)) or 'none'} were given"
            )

    @property
    def LARGEST_FIRST(self) -> bool:  # type: ignore[override]  # noqa: N802  as the other rules have it
        return all(rule.LARGEST_FIRST for rule in self.rules)

    @property
    def switches(self) -> list[float]:
        """List the shares of the steps after which another rule follows, and the end."""
        return [done / sum(self.shares) for done in accumulate(self.shares)]

    def ends(self, steps: int) -> list[int]:
        """List the step at which each rule ends."""
        return [round(steps * done / sum(self.shares)) for done in accumulate(self.shares)]

    def bind(self, hull: Hull, steps: int, seed: int = 0) -> Draw:
        ends = self.ends(steps)
        starts = [0, *ends[:-1]]
        draws = [
            rule.bind(hull, max(1, end - at), seed) for rule, at, end in zip(self.rules, starts, ends, strict=True)
        ]

        def draw(rng: Generator, step: int) -> list[Card]:
            phase = next((number for number, end in enumerate(ends) if step < end), len(ends) - 1)
            return draws[phase](rng, step - starts[phase])

        return draw

    def work(self, middle: float, smallest: float) -> float:
        parts = zip(self.rules, self.shares, strict=True)
        return sum(share * rule.work(middle, smallest) for rule, share in parts) / sum(self.shares)


def _sampled(space: Space, rng: Generator, number: int, by: Literal["gene", "design"]) -> list[Card]:
    return [space.card(space.sample(rng, by)) for _ in range(number)]


def choices_of(part: Combinator[Any], name: str = "") -> dict[str, int]:
    """Count the options of each choice of a space, by field name, at most; lists come as their `length`."""
    own = part.own_options
    found = {_choice(part, name): len(ordered(own) or (None,))} if own else {}
    for step, below in part.inner_parts():
        for choice, many in choices_of(below, _field(step, name)).items():
            found[choice] = max(many, found.get(choice, 1))
    return found


def opened(part: Combinator[Any], counts: Mapping[str, int], name: str = "") -> Combinator[Any]:
    """Narrow a space to the largest options of its choices: as many as `counts` says of each, or else only one."""
    options = part.own_options or ()
    falling = ordered(options)  # choices between kinds are open from the beginning
    kept = options if falling is None else falling[: counts.get(_choice(part, name), 1)]
    return part.rebuilt(kept, [opened(below, counts, _field(step, name)) for step, below in part.inner_parts()])


def _choice(part: Combinator[Any], name: str) -> str:
    """Name the choice that a part itself makes."""
    return part.OWN.strip(".") or name


def _field(step: str, name: str) -> str:
    """Name a part inside another by its own field; members of a list are called like the list."""
    return name if step[:1] in ("", "[") else step[1:]
