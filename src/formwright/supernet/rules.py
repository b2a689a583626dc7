"""Rules of sampling: which designs of a super-network learn at a step, and the largest and smallest of them.

A rule is a part whose fields are its options. Bound to the ends of a space it gives the cards of a step, from a
generator that the seed of the training and the step alone decide.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.options import Part, option
from formwright.core.registry import Registry
from formwright.core.rng import derive
from formwright.space.combinators import Choice, Record, Switch
from formwright.space.design import Case, Combinator, Fields
from formwright.space.narrow import Within
from formwright.space.repeat import Repeat, Row
from formwright.space.space import Space

LENGTH = "length"  # what the number of entries of a list is called among the choices
_SAMPLED = 20  # designs that are read from the largest one before a training begins

Pick = Callable[[Any], Any]  # `max` or `min`

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


@dataclass(frozen=True)
class Hull:
    """A space with its largest and its smallest design."""

    space: Space
    largest: Card
    smallest: Card


class Rule(Part):
    """Be a rule of sampling; `LARGEST_FIRST` says that every step begins with the largest design."""

    LARGEST_FIRST: ClassVar[bool] = False

    @classmethod
    def registry(cls) -> Registry[Any]:
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
    designs: int = option(1, "designs of a step", least=1)
    by: Literal["gene", "design"] = option("gene", "draw each choice uniformly, depth too, or all designs alike")

    def bind(self, hull: Hull, steps: int) -> Draw:
        return lambda rng, step: _sampled(hull.space, rng, self.designs, self.by)

    def work(self, middle: float, smallest: float) -> float:
        return self.designs * middle


@dataclass(frozen=True)
class Sandwich(Rule):
    """Train the largest design, the smallest and some between them (Yu and Huang 2019, section 3.1; EFTNAS)."""

    NAME: ClassVar[str] = "sandwich"
    LARGEST_FIRST: ClassVar[bool] = True
    between: int = option(1, "random designs of a step, besides the largest and the smallest", least=0)

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
    largest: float = option(0.25, "share of the steps that train the largest design alone", least=0, most=1)
    order: tuple[str, ...] = option((LENGTH,), "choices in the order in which they open, by field name; length: depth")
    designs: int = option(2, "designs of a step, once there is a choice", least=1)
    last: float = option(
        4.8, "how many times longer the last phase of a choice is than the phases before it", least=0.01
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


def _sampled(space: Space, rng: Generator, number: int, by: Literal["gene", "design"]) -> list[Card]:
    return [space.card(space.sample(rng, by)) for _ in range(number)]


def hull(space: Space) -> Hull:
    """Find the ends of a space by its structure: every choice takes its largest value, or its smallest.

    The ends may break constraints of the space: they hold the weights of all designs, and need not be designs. Raise
    `IllegalInput` where choices have no order, as those between kinds of operations.
    """
    largest, smallest = (space.card(_end(space.root, pick, space.name)) for pick in (max, min))
    return Hull(space, largest, smallest)


def check_readable(space: Space, whole: Card, samples: int = _SAMPLED) -> None:
    """Refuse a space with designs whose weights cannot be read out of those of `whole`, as samples tell."""
    import torch  # noqa: PLC0415  spaces are listed and shown without it

    from formwright.nn.build import skeleton  # noqa: PLC0415
    from formwright.nn.inherit import inherit  # noqa: PLC0415

    weights: dict[str, torch.Tensor] = dict(skeleton(whole).named_parameters())
    for turn in range(samples):
        card = space.card(space.sample(derive(0, "hull", turn), "gene"))
        if missing := inherit(weights, whole, card).missing:
            raise IllegalInput(
                f"the designs of space {space.name!r} cannot share the weights of one network: its largest design has "
                f"no {missing[0]} that a smaller one could read ({len(missing)} such tensors in sample {turn}). Spaces "
                "whose designs are slices of the largest can, such as autoformer-nano or autotinybert"
            )


def choices_of(part: Combinator[Any], name: str = "") -> Iterator[tuple[str, int]]:
    """List the choices of a space by field name, each with its number of options; lists come as their `length`."""
    match part:
        case Choice(options):
            yield name, len(options)
        case Record(inner) | Switch(inner):
            for key, below in inner:
                yield from choices_of(below, key)
        case Repeat(member):
            yield LENGTH, len(part.lengths)
            yield from choices_of(member, name)
        case Row(parts, lengths):
            yield LENGTH, len(lengths)
            for below in parts:
                yield from choices_of(below, name)
        case Within(_, narrower):
            yield from choices_of(narrower, name)


def opened(part: Combinator[Any], counts: Mapping[str, int], name: str = "") -> Combinator[Any]:
    """Narrow a space to the largest options of its choices: as many as `counts` says of each, or else only one."""
    match part:
        case Choice(options):
            return Choice(tuple(sorted(options, key=_size, reverse=True)[: counts.get(name, 1)]))
        case Record(inner):
            return Record(tuple((key, opened(below, counts, key)) for key, below in inner))
        case Switch(inner):
            return Switch(tuple((key, opened(below, counts, key)) for key, below in inner))
        case Repeat(member, _, tied):
            return Repeat(opened(member, counts, name), _longest(part.lengths, counts), tied)
        case Row(parts, lengths, tied):
            return Row(tuple(opened(below, counts, name) for below in parts), _longest(lengths, counts), tied)
        case Within(_, narrower):
            return opened(narrower, counts, name)
        case _:
            return part


def _longest(lengths: tuple[int, ...], counts: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sorted(lengths, reverse=True)[: counts.get(LENGTH, 1)])


def _end(part: Combinator[Any], pick: Pick, where: str) -> Any:
    match part:
        case Choice(options):
            return _extreme(options, pick, where)
        case Record(inner):
            return Fields(tuple((key, _end(below, pick, f"{where}.{key}")) for key, below in inner))
        case Switch(((tag, only),)):
            return Case(tag, _end(only, pick, f"{where}.{tag}"))
        case Repeat(member, _, tied):
            return (_end(member, pick, where),) * (pick(part.lengths) // tied)
        case Row(parts, lengths, tied):
            heads = [_end(below, pick, where) for below in parts]
            return tuple(heads[index // tied] for index in range(pick(lengths)))
        case Within(_, narrower):
            return _end(narrower, pick, where)
        case _:
            raise IllegalInput(
                f"{where} chooses between kinds, of which none is the largest: its designs cannot share the weights of "
                "one network"
            )


def _extreme(options: tuple[Any, ...], pick: Pick, where: str) -> Any:
    """Give the option that is largest, or smallest, in every number that it has."""
    if len(options) == 1:
        return options[0]
    rows = list(map(_size, options))
    if len(set(map(len, rows))) == 1 and all(type(value) in (int, float) for row in rows for value in row):
        ends = tuple(map(pick, zip(*rows, strict=True)))
        if ends in rows:
            return options[rows.index(ends)]
    shown = ", ".join(map(str, options[:4]))
    raise IllegalInput(
        f"{where} chooses between {shown}{', ...' if len(options) > 4 else ''}, of which none is the largest: its "
        "designs cannot share the weights of one network"
    )


def _size(option: Any) -> Any:
    return option if isinstance(option, tuple) else (option,)
