"""Turn a generator of rows into the splits of a task."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from formwright.core.rng import derive
from formwright.tasks.mini_glue.draw import Draw
from formwright.tasks.rows import Splits, TextRows

_TRIES = 1_000
SIZES = (8192, 1024, 1024)
Texts = tuple[str, ...]
Row = tuple[Texts, int | float]


@dataclass(frozen=True)
class Recipe:
    """Say how the rows of a task are drawn.

    `draw` makes the texts of a row whose class is given. `scores` are what the classes stand for where the task is a
    regression. In every split, `noise` percent of each class carry the label of the next class.
    """

    name: str
    draw: Callable[[Draw, int], Texts]
    classes: int = 2
    noise: int = 3
    scores: tuple[float, ...] = ()
    seed: int = 0

    def __call__(self) -> Splits[TextRows]:
        """Make all rows; no two rows of the task are equal."""
        seen: set[Texts] = set()
        return Splits(*(self._rows(split, size, seen) for split, size in enumerate(SIZES)))

    def _rows(self, split: int, size: int, seen: set[Texts]) -> TextRows:
        rng = derive(self.seed, "mini-glue", self.name, split)
        draw = Draw(rng)
        texts = [self._fresh(draw, index % self.classes, seen) for index in range(size)]
        labels = _noisy(size, self.classes, self.noise)
        order = _shuffled(rng, size)
        named: Sequence[int | float] = self.scores or range(self.classes)
        return TextRows(tuple(texts[row] for row in order), tuple(named[labels[row]] for row in order))

    def _fresh(self, draw: Draw, wanted: int, seen: set[Texts]) -> Texts:
        for _ in range(_TRIES):
            texts = self.draw(draw, wanted)
            if texts not in seen:
                seen.add(texts)
                return texts
        raise AssertionError(f"the recipe of {self.name} has too few different rows of class {wanted}")


def _noisy(size: int, classes: int, percent: int) -> list[int]:
    # the first rows of each class move on by one class: their number is exact, so the classes stay balanced
    moved = size // classes * percent // 100
    return [(row % classes + (row // classes < moved)) % classes for row in range(size)]


def _shuffled(rng: Generator, size: int) -> list[int]:
    return [int(row) for row in np.argsort(rng.integers(2**62, size=size), kind="stable")]
