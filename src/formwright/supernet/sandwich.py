"""Which sub-networks learn at a step: the largest, the smallest, and some drawn at random (the sandwich rule)."""

from dataclasses import dataclass

from numpy.random import Generator

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.space.space import Space


@dataclass(frozen=True)
class Sandwich:
    """Draw the cards of a step: both ends of a space and `between` others."""

    space: Space
    largest: Card
    smallest: Card
    between: int = 1

    def __post_init__(self) -> None:
        """Refuse a number of others that cannot be."""
        if self.between < 0:
            raise IllegalInput(f"a step can train 0, 1, 2 or more sub-networks between the ends, not {self.between}")

    def cards(self, rng: Generator) -> list[Card]:
        """Draw, the largest first."""
        drawn = [self.space.card(self.space.sample(rng)) for _ in range(self.between)]
        return [self.largest, *drawn, self.smallest]
