"""Limits of a study: those known from the card alone, those that are measured, and those on scores."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from numpy.random import Generator

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.records import Objective
from formwright.core.rng import derive
from formwright.cost import COSTS, Meter, cost, counted_costs, is_measured
from formwright.search.proposals import listable
from formwright.search.scores import violation
from formwright.space.space import Space
from formwright.tasks.metrics import METRICS

ALWAYS = ("params", "macs")  # costs that every observation has
_SAMPLES = 500
_STEPS = 200
_MEASURED = 3
_LISTED = 20_000  # designs that are all counted to find those with the fewest MACs
_KEPT = 1_000


@dataclass(frozen=True)
class Limits:
    """Sort the limits of a study by when they can be checked.

    `cheap` ones follow from the card and are checked before a design is proposed, `measured` ones before it is trained,
    `scores` after.
    """

    cheap: tuple[Objective, ...]
    measured: tuple[Objective, ...]
    scores: tuple[Objective, ...]
    length: int

    @classmethod
    def parse(cls, texts: Sequence[str], length: int) -> "Limits":
        """Read limits such as `params<=5M`, `latency_ms<=5` or `accuracy>=0.8`."""
        limits = [Objective.parse(text) for text in texts]
        for limit in limits:
            if limit.bound is None:
                raise IllegalInput(f"{str(limit)!r} sets no limit; write, for example, 'params<=5M'")
        return cls(
            tuple(limit for limit in limits if limit.name in counted_costs()),
            tuple(limit for limit in limits if is_measured(limit.name)),
            tuple(limit for limit in limits if limit.name not in COSTS.names()),
            length,
        )

    def legal(self, card: Card) -> bool:
        """Tell whether a card keeps the cheap limits."""
        return all(limit.meets(cost(card, limit.name, self.length)) for limit in self.cheap)

    def gate(self, meters: Mapping[str, Meter]) -> Callable[[Card], str | None]:
        """Give the function that says which measured limit a card breaks."""

        def refusal(card: Card) -> str | None:
            for name in dict.fromkeys(limit.name for limit in self.measured):
                own = [limit for limit in self.measured if limit.name == name]
                found = meters[name].decided(card, partial(_all_meet, own))
                broken = next((limit for limit in own if not limit.meets(found)), None)
                if broken is not None:
                    return f"{name} is {found:.3g}, beyond the limit {broken}{busy(meters[name])}"
            return None

        return refusal

    def refuse_impossible(self, space: Space, seed: int) -> None:
        """Look for a design that keeps the cheap limits; where none is found, say what the nearest one costs.

        All designs are looked at where they can be listed.
        """
        if not self.cheap:
            return
        rng = derive(seed, "feasible")
        listed = chain([space.sample(rng)], space.enumerate()) if listable(space) else None
        found = listed or self._downhill(space, rng, lambda design: self._broken(space.card(design)))
        card = space.card(self._nearest(space, found))
        if self.legal(card):
            return
        names = dict.fromkeys(limit.name for limit in self.cheap)  # a cost may have two limits
        costs = ", ".join(f"{name} {cost(card, name, self.length):,.0f}" for name in names)
        wanted = " and ".join(map(str, self.cheap))
        raise IllegalInput(
            f"no design of {space.name} with {wanted} was found; the nearest has {costs}. Loosen the limit"
        )

    def check_measured_feasible(self, space: Space, seed: int, meters: Mapping[str, Meter]) -> None:
        """Measure the designs with the fewest MACs; refuse a limit that the fastest misses by a factor of two.

        A nearer miss may be chance, or a design with more MACs may be faster.
        """
        if not self.measured:
            return
        smallest = self._fewest_macs(space, derive(seed, "fast"))
        for name in dict.fromkeys(limit.name for limit in self.measured):
            own, least = [limit for limit in self.measured if limit.name == name], math.inf
            for card in smallest:
                least = min(least, meters[name].decided(card, partial(_is_near, own)))
                if _is_near(own, least):
                    break
            else:
                raise IllegalInput(
                    f"no design of {space.name} with {' and '.join(map(str, own))} is to be expected: of the "
                    f"{len(smallest)} designs with the fewest MACs the best has {name} {least:.3g} at {self.length} "
                    f"tokens{busy(meters[name])}. Loosen the limit"
                )

    def _fewest_macs(self, space: Space, rng: Generator) -> list[Card]:
        """Find the designs with the fewest MACs among those that keep the cheap limits."""

        def key(design: Any) -> tuple[float, float]:
            card = space.card(design)
            return self._broken(card), cost(card, "macs", self.length)

        few = listable(space) and space.count() <= _LISTED
        found: dict[str, tuple[tuple[float, float], Card]] = {}
        for design in space.enumerate() if few else self._downhill(space, rng, key):
            card = space.card(design)
            found[card.digest] = key(design), card
            if len(found) > _KEPT:
                found = _smallest(found, _MEASURED)
        return [card for _, card in _smallest(found, _MEASURED).values()]

    def _nearest(self, space: Space, designs: Iterable[Any]) -> Any:
        """Give the first design that keeps the cheap limits, or else the one that breaks them least."""
        nearest, least = None, math.inf
        for design in designs:
            broken = self._broken(space.card(design))
            if nearest is None or broken < least:
                nearest, least = design, broken
            if not broken:
                break
        return nearest

    def _downhill(self, space: Space, rng: Generator, key: Callable[[Any], Any]) -> Iterator[Any]:
        """Draw designs, and then mutate on and on the one with the least key."""
        draws = [space.sample(rng) for _ in range(_SAMPLES)]
        yield from draws
        best = min(draws, key=key)
        for _ in range(_STEPS):
            try:
                others = [space.mutate(best, rng) for _ in range(5)]
            except IllegalInput:  # a constrained space finds no move from here
                return
            yield from others
            best = min((best, *others), key=key)

    def _broken(self, card: Card) -> float:
        return sum(violation(limit, cost(card, limit.name, self.length)) for limit in self.cheap)


def _all_meet(limits: Sequence[Objective], value: float) -> bool:
    return all(limit.meets(value) for limit in limits)


def _is_near(limits: Sequence[Objective], value: float) -> bool:
    return all(violation(limit, value) <= 1.0 for limit in limits)


def busy(latency: Meter) -> str:
    """Say that the machine was busy at the last measurement; nothing where it was not."""
    return " (the machine is busy with other work)" if latency.busy else ""


def _smallest(found: Mapping[str, tuple[Any, Card]], number: int) -> dict[str, tuple[Any, Card]]:
    return dict(sorted(found.items(), key=lambda entry: entry[1][0])[:number])


def refuse_impossible_bounds(limits: Iterable[Objective]) -> None:
    """Refuse limits of one name that contradict each other, and a limit beyond what its score or cost can be."""
    least: dict[str, Objective] = {}
    most: dict[str, Objective] = {}
    for limit in limits:
        assert limit.bound is not None
        side, tighter = (most, min) if limit.direction == "min" else (least, max)
        side[limit.name] = tighter(side.get(limit.name, limit), limit, key=lambda one: one.bound or 0.0)
        _refuse_out_of_range(limit)
    for name, low in least.items():
        high = most.get(name)
        if high is not None and (low.bound or 0.0) > (high.bound or 0.0):
            raise IllegalInput(f"the limits {low} and {high} contradict each other: no {name} keeps both; drop one")


def _refuse_out_of_range(limit: Objective) -> None:
    """Refuse a limit that not even the best possible value keeps; costs have values from 0 on."""
    low, high = METRICS.get(limit.name).range if limit.name in METRICS.names() else (0.0, math.inf)
    if not (limit.meets(low) or limit.meets(high)):
        top = f"from {low:g} to {high:g}" if high < math.inf else f"at least {low:g}"
        raise IllegalInput(f"the limit {limit} can never be kept: {limit.name} is {top}; give a value in that range")
