"""Turn a generator of rows into the splits of a task."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from numpy.random import Generator

from formwright.core.rng import derive
from formwright.tasks.draw import Draw, shuffled
from formwright.tasks.rows import Splits, TextRows

# validation is cheap, and what it leaves to chance would blur the order of designs
SIZES = (8192, 2048, 2048)
_TRIES = 1_000

Texts = tuple[str, ...]


@dataclass(frozen=True)
class RowMaker:
    """Say how the rows of a task are drawn.

    `draw` makes the texts of a row whose class is given. `scores` are what the classes stand for where the task is a
    regression. In every split, `noise` percent of each class carry the label of the next class.
    """

    name: str
    draw: Callable[[Draw, int], Texts]
    classes: int = 2
    noise: int = 5
    scores: tuple[float, ...] = ()
    seed: int = 0

    def __call__(self) -> Splits[TextRows]:
        """Make all rows: no two of them are equal, and every split holds equally many of each class, give or take one.

        Rows are dealt to the splits after all are drawn. Were they drawn split by split, the later splits would lack
        the simplest sentences, which are few and would all be taken.
        """
        rng = derive(self.seed, "mini-glue", self.name)
        total = sum(SIZES)
        texts = self._different(Draw(rng), total)
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
