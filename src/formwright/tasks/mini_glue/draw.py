"""Random choices of words, from an explicit generator."""

from collections.abc import Sequence
from typing import TypeVar

from numpy.random import Generator

from formwright.tasks.mini_glue.words import ASIDES

T = TypeVar("T")


class Draw:
    """Draw from sequences; only integers are drawn, which every version of numpy draws alike."""

    def __init__(self, rng: Generator) -> None:
        self._rng = rng

    def below(self, bound: int) -> int:
        """Draw a number from 0 to `bound` - 1."""
        return int(self._rng.integers(bound))

    def one(self, items: Sequence[T]) -> T:
        """Draw one item."""
        return items[self.below(len(items))]

    def other(self, items: Sequence[T], *taken: T) -> T:
        """Draw one item that is none of the taken ones."""
        return self.one([item for item in items if item not in taken])

    def some(self, items: Sequence[T], number: int) -> list[T]:
        """Draw different items, in random order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(number)]

    def chance(self, percent: int) -> bool:
        """Say yes in that many of a hundred cases."""
        return self.below(100) < percent

    def aside(self, percent: int, sentence: str) -> str:
        """Put words that mean nothing before or behind a sentence, in that many of a hundred cases."""
        if not self.chance(percent):
            return sentence
        words = self.one(ASIDES)
        return f"{words} {sentence}" if self.chance(50) else f"{sentence} {words}"
