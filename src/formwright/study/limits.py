"""Limits of a study: those known from the card alone, those that are measured, and those on scores."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from numpy.random import Generator

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.records import Objective
from formwright.core.rng import derive
from formwright.cost import COSTS
from formwright.search.scores import violation
from formwright.search.unseen import listable
from formwright.space.space import Space

LATENCY = "latency_ms"
ALWAYS = ("params", "macs")  # costs that every observation has
_SAMPLES = 500
_STEPS = 200
_MEASURED = 3


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
        """Read limits such as `params<=5e6`, `latency_ms<=5` or `accuracy>=0.8`."""
        limits = [Objective.parse(text) for text in texts]
        for limit in limits:
            if limit.bound is None:
                raise IllegalInput(f"{str(limit)!r} sets no limit; write, for example, 'params<=5e6'")
        names = set(COSTS.names())
        return cls(
            tuple(limit for limit in limits if limit.name in names),
            tuple(limit for limit in limits if limit.name == LATENCY),
            tuple(limit for limit in limits if limit.name not in names and limit.name != LATENCY),
            length,
        )

    def legal(self, card: Card) -> bool:
        """Tell whether a card keeps the cheap limits."""
        return all(limit.meets(cost(card, limit.name, self.length)) for limit in self.cheap)

    def gate(self, measure: Callable[[Card], float]) -> Callable[[Card], str | None]:
        """Give the function that says which measured limit a card breaks."""

        def refusal(card: Card) -> str | None:
            if not self.measured:
                return None
            found = measure(card)
            broken = next((limit for limit in self.measured if not limit.meets(found)), None)
            return None if broken is None else f"{LATENCY} is {found:.3g}, beyond the limit {broken}"

        return refusal

    def refuse_impossible(self, space: Space, seed: int) -> None:
        """Look for a design that keeps the cheap limits; where none is found, say what the nearest one costs.

        All designs are looked at where they can be listed.
        """
        if not self.cheap:
            return
        rng = derive(seed, "feasible")
        found = chain([space.sample(rng)], space.enumerate()) if listable(space) else self._downhill(space, rng)
        card = space.card(self._nearest(space, found))
        if self.legal(card):
            return
        names = dict.fromkeys(limit.name for limit in self.cheap)  # a cost may have two limits
        costs = ", ".join(f"{name} {cost(card, name, self.length):,.0f}" for name in names)
        wanted = " and ".join(map(str, self.cheap))
        raise IllegalInput(
            f"no design of {space.name} with {wanted} was found; the nearest has {costs}. Loosen the limit"
        )

    def refuse_far_too_fast(self, space: Space, seed: int, measure: Callable[[Card], float]) -> None:
        """Measure a few of the smallest designs; refuse a limit that the fastest of them misses by a factor of two.

        A nearer miss may be chance, or another design may keep the limit.
        """
        if not self.measured:
            return
        rng = derive(seed, "fast")
        cards = [space.card(space.sample(rng)) for _ in range(_SAMPLES // 10)]
        legal = [card for card in cards if self.legal(card)] or cards
        smallest = sorted(legal, key=lambda card: cost(card, "macs", self.length))[:_MEASURED]
        fastest = min(map(measure, smallest))
        for limit in self.measured:
            if violation(limit, fastest) > 1.0:
                found = f"the fastest of {len(smallest)} small ones takes {fastest:.3g} ms"
                raise IllegalInput(
                    f"no design of {space.name} with {limit} is to be expected; {found}. Loosen the limit"
                )

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

    def _downhill(self, space: Space, rng: Generator) -> Iterator[Any]:
        """Draw designs, and then mutate the nearest on and on."""
        draws = [space.sample(rng) for _ in range(_SAMPLES)]
        yield from draws
        best = self._nearest(space, draws)
        for _ in range(_STEPS):
            try:
                others = [space.mutate(best, rng) for _ in range(5)]
            except IllegalInput:  # a constrained space finds no move from here
                return
            yield from others
            best = self._nearest(space, (best, *others))

    def _broken(self, card: Card) -> float:
        return sum(violation(limit, cost(card, limit.name, self.length)) for limit in self.cheap)


def cost(card: Card, name: str, length: int) -> float:
    """Give a cost of a card by its name."""
    return float(COSTS.get(name)(card, length).value)
