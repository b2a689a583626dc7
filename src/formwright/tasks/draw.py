"""Random choices for generated tasks, from an explicit generator."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeVar

import numpy as np
from numpy.random import Generator

T = TypeVar("T")


class Draw:
    """Draw from sequences. Only integers are drawn, because numpy is least likely to change how it draws them."""

    def __init__(self, rng: Generator) -> None:
        self._rng = rng

    def below(self, bound: int) -> int:
        """Draw a number from 0 to `bound` - 1."""
        return int(self._rng.integers(bound))

    def one(self, items: Sequence[T]) -> T:
        """Draw one item."""
        return items[self.below(len(items))]

    def other(self, items: Sequence[T], *taken: T) -> T:
        """Draw one item that is not among the taken ones."""
        return self.one([item for item in items if item not in taken])

    def common(self, items: Sequence[T], *taken: T) -> T:
        """Draw one item that is not among the taken ones, with weights 1, 1/2, 1/3 and so on.

        Words of graded frequency are learned one after another, equally frequent ones all at once.
        """
        weights = [0 if item in taken else 840 // place for place, item in enumerate(items, start=1)]
        return items[bisect_right(list(accumulate(weights)), self.below(sum(weights)))]

    def pair(self, items: Sequence[T]) -> list[T]:
        """Draw two different items, common ones more often, in random order."""
        first = self.common(items)
        return self.some((first, self.common(items, first)), 2)

    def some(self, items: Sequence[T], number: int) -> list[T]:
        """Draw different items, in random order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(number)]

    def chance(self, percent: int) -> bool:
        """Return true with a probability of `percent`."""
        return self.below(100) < percent


def shuffled(rng: Generator, size: int) -> list[int]:
    """Put the numbers from 0 to `size` - 1 in random order, by sorting drawn integers."""
    return [int(row) for row in np.argsort(rng.integers(2**62, size=size), kind="stable")]
