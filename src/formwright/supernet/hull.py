"""The hull of a space: its largest design and its smallest one.

Where all choices have an order, every choice takes its largest value, and the largest design holds the weights of all
others. Where some are between kinds, of which none is the largest, sampled designs are improved choice by choice until
none helps, and a library holds the weights (`formwright.supernet.library`).
"""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from heapq import nlargest
from math import prod
from typing import Any

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.arch.tensors import Tensor
from formwright.core.errors import FormwrightError
from formwright.core.rng import derive
from formwright.cost import params
from formwright.space.design import Combinator
from formwright.space.space import Space

_SAMPLED = 100  # designs of each way of drawing, that are read from the largest one before it is taken for the whole
_SAMPLED_UNORDERED = 250  # designs of each way of drawing, among which the search for the hull starts
_STARTS = 4  # designs from which each end of the hull is climbed to

Pick = Callable[[Any], Any]  # `max` or `min`


@dataclass(frozen=True)
class Hull:
    """A space with its largest and its smallest design; `ordered` where each choice has its largest value there."""

    space: Space
    largest: Card
    smallest: Card
    ordered: bool = True

    @cached_property
    def whole(self) -> bool:
        """Tell whether the largest design holds the weights of all others."""
        return self.ordered and reads_all(self.space, self.largest)


@lru_cache(maxsize=64)
def find_hull(space: Space) -> Hull:
    """Find the hull of a space by its structure, choice by choice from sampled designs where choices have no order.

    Where they have, its designs may break constraints of the space: they hold weights, and need not be designs of it.
    Where they have not, they are the largest and the smallest design that were found.
    """
    if not has_order(space):
        return _climbed_hull(space)
    largest, smallest = (space.card(_extreme_value(space.root, pick)) for pick in (max, min))
    return Hull(space, largest, smallest)


def has_order(space: Space) -> bool:
    """Tell whether each choice of a space has a largest and a smallest option."""
    try:
        for pick in (max, min):
            _extreme_value(space.root, pick)
    except _NoOrder:
        return False
    return True


def _climbed_hull(space: Space) -> Hull:
    """Find the designs with the most and the fewest parameters that no change of one choice improves."""

    @cache
    def size(design: Any) -> int | None:
        try:
            return params(space.card(design))
        except FormwrightError:  # choices that do not go together
            return None

    def climbed(design: Any, better: Callable[[Any], float]) -> Any:
        before = None
        while before != design:
            before, place = design, 0
            while place < len(genes := space.genes(design)):
                design = max((design, *space.variants(design, genes[place])), key=better)
                place += 1
        return design

    begun, ends = tuple(dict.fromkeys(_starting_designs(space))), list[Card]()
    for sign in (1, -1):

        def better(design: Any, sign: int = sign) -> float:
            found = size(design)
            return -math.inf if found is None else sign * found

        tops = [climbed(start, better) for start in nlargest(_STARTS, begun, key=better)]
        ends.append(space.card(max(tops, key=better)))
    largest, smallest = ends
    return Hull(space, largest, smallest, ordered=False)


def _starting_designs(space: Space) -> Iterator[Any]:
    """Yield sampled designs, as drawn and with all numbers raised to their largest values where that is allowed."""
    for turn in range(_SAMPLED_UNORDERED):
        yield space.sample(derive(0, "hull by design", turn), "design")
        yield (design := space.sample(derive(0, "hull", turn), "gene"))
        with suppress(FormwrightError):
            if space.contains(high := raised(space.root, design)):
                yield high


def reads_all(space: Space, whole: Card) -> bool:
    """Tell, by samples, whether all designs of a space can be read out of the weights of `whole`."""
    from formwright.nn.cuts import cuts  # noqa: PLC0415  spaces are listed and shown without torch

    given, read = tensors_of(whole), set[tuple[Tensor, ...]]()
    for design in _sampled_designs(space):
        parts: dict[str, list[Tensor]] = {}
        for tensor in tensors_of(space.card(design)).values():
            parts.setdefault(tensor.part, []).append(tensor)
        new = {tuple(some) for some in parts.values()} - read  # designs have most parts in common
        wanted = {tensor.name: tensor for some in new for tensor in some}
        if len(cuts(given, wanted, {name: name for name in wanted})) < len(wanted):
            return False
        read |= new
    return True


def _sampled_designs(space: Space) -> Iterator[Any]:
    """Yield designs of a space: uniformly drawn choices show rare sizes, uniformly drawn designs rare combinations."""
    for turn in range(_SAMPLED):
        yield space.sample(derive(0, "hull", turn), "gene")
        yield space.sample(derive(0, "hull by design", turn), "design")


def regrouped_heads(space: Space, whole: Card) -> str:
    """Say, by samples, into which other heads designs group the channels of `whole`; nothing where they do not.

    Where something is larger than in `whole`, such as the width of a head, but not the whole axis, channels are grouped
    into other heads (HAT).
    """
    given = tensors_of(whole)
    for design in _sampled_designs(space):
        for name, tensor in tensors_of(space.card(design)).items():
            for had, has in zip(given[name].axes if name in given else (), tensor.axes, strict=False):
                sizes = [tuple(factor.size for factor in axis) for axis in (had, has)]
                if prod(sizes[1]) <= prod(sizes[0]) and any(its > own for own, its in zip(*sizes, strict=False)):
                    return " as ".join(" x ".join(map(str, one)) for one in sizes) + f" in {name}"
    return ""


def sampled_cards(space: Space, number: int) -> Iterator[Card]:
    """Yield designs of a space, each as drawn and with all numbers raised to their largest values."""
    for turn in range(number):
        yield from with_raised(space, space.sample(derive(0, "hull", turn), "gene"))


def with_raised(space: Space, design: Any) -> Iterator[Card]:
    """Yield the card of a design, and that of the same design with all numbers raised to their largest values."""
    yield space.card(design)
    try:
        yield space.card(raised(space.root, design))
    except FormwrightError:
        return  # numbers that do not go together


def raised(part: Combinator[Any], value: Any) -> Any:
    """Give a design all numbers of which are the largest and all lists the longest; other choices stay."""
    if part.own_options is None:
        return value
    taken, values = part.split(value)
    option = next(_extreme(part.own_options, max), taken)
    inner = part.inner_parts(option)
    if inner and not values:
        return value  # an empty list has no members to repeat
    held = [below.nearest(values[index % len(values)]) for index, (_, below) in enumerate(inner)]
    return part.join(option, [raised(below, one) for (_, below), one in zip(inner, held, strict=True)])


class _NoOrder(Exception):
    """Raised where a choice has no largest option."""


def _extreme_value(part: Combinator[Any], pick: Pick) -> Any:
    """Give the value whose every choice is the largest, or the smallest; raise where a choice has none."""
    found = [None] if part.own_options == () else list(_extreme(part.own_options or (), pick))
    if not found:
        raise _NoOrder
    return part.join(found[0], [_extreme_value(below, pick) for _, below in part.inner_parts(found[0])])


def ordered(options: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Order options from the largest to the smallest; None where they are not numbers."""
    rows = [option if isinstance(option, tuple) else (option,) for option in options]
    if len(options) > 1 and not all(type(value) in (int, float) for row in rows for value in row):
        return None
    return tuple(option for _, option in sorted(zip(rows, options, strict=True), reverse=True))


def _extreme(options: tuple[Any, ...], pick: Pick) -> Iterator[Any]:
    """Yield the option that is largest, or smallest, in every number that it has; nothing where there is none."""
    rows = [option if isinstance(option, tuple) else (option,) for option in options]
    if len(options) == 1:
        yield options[0]
    elif ordered(options) is not None and len(set(map(len, rows))) == 1:
        ends = tuple(map(pick, zip(*rows, strict=True)))
        if ends in rows:
            yield options[rows.index(ends)]
