"""Random choices for generated tasks, from an explicit generator, and how drawn rows become splits."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

import numpy as np
from numpy.random import Generator

from formwright.core.rng import derive
from formwright.tasks.rows import Splits, TextRows

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


# a large validation set is cheap, and reduces the noise in the ranking of designs
SIZES = (8192, 2048, 2048)
_TRIES = 1_000

Texts = tuple[str, ...]


@dataclass(frozen=True)
class RowMaker:
    """How the rows of a task are drawn.

    `draw` makes the texts of a row of a given class. `scores` are the values of the classes in a regression. In every
    split, `noise` percent of each class have the label of the next class.
    """

    name: str
    draw: Callable[[Draw, int], Texts]
    classes: int = 2
    noise: int = 5
    scores: tuple[float, ...] = ()
    seed: int = 0

    def __call__(self) -> Splits[TextRows]:
        """Make all rows: no duplicates, and balanced classes in every split.

        All rows are drawn before they are divided: drawn split by split, the later splits would lack the simplest
        sentences, of which there are few.
        """
        rng = derive(self.seed, "mini-glue", self.name)
        texts = self._different(Draw(rng), sum(SIZES))
        by_class = [texts[label :: self.classes] for label in range(self.classes)]
        dealt = [iter([rows[place] for place in shuffled(rng, len(rows))]) for rows in by_class]
        starts = [0, *accumulate(SIZES)]
        return Splits(*(self._split(rng, dealt, start, size) for start, size in zip(starts, SIZES, strict=False)))

    def _different(self, draw: Draw, total: int) -> list[Texts]:
        seen: dict[Texts, None] = {}  # a set that keeps the order
        for row in range(total):
            for _ in range(_TRIES):
                texts = self.draw(draw, row % self.classes)
                if texts not in seen:
                    break
            assert texts not in seen, f"the maker of {self.name} has too few different rows"
            seen[texts] = None
        return list(seen)

    def _split(self, rng: Generator, dealt: Sequence[Iterator[Texts]], start: int, size: int) -> TextRows:
        classes = [(start + row) % self.classes for row in range(size)]
        texts = [next(dealt[label]) for label in classes]
        moved = size // self.classes * self.noise // 100 * self.classes
        named: Sequence[int | float] = self.scores or range(self.classes)
        labels = [named[(label + (row < moved)) % self.classes] for row, label in enumerate(classes)]
        order = shuffled(rng, size)
        return TextRows(tuple(texts[place] for place in order), tuple(labels[place] for place in order))
