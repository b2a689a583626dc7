"""The grammar of the generated tasks: shared words, phrases and opinions, and how rows become splits."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from numpy.random import Generator

from formwright.core.rng import derive
from formwright.tasks.draw import Draw, shuffled
from formwright.tasks.rows import Splits, TextRows

# few words of each kind, so that seconds of training can learn them
PEOPLE = ("cook", "nurse", "farmer", "pilot", "singer", "painter", "baker", "guard")
PLACES = ("garden", "kitchen", "market", "station", "theatre", "harbour")
TIMES = ("today", "yesterday", "tonight", "sometimes", "daily", "early")

POSITIVE = ("good", "lovely", "clever", "bright", "charming", "fresh", "moving", "honest")
NEGATIVE = ("bad", "ugly", "stupid", "dull", "boring", "stale", "clumsy", "cheap")

ASIDES = ("in the end", "as they say", "of course", "once again", "by the way", "as always")


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


_FAR = "it is false that "


def aside(draw: Draw, percent: int, sentence: str) -> str:
    """Put words without meaning before or after a sentence, with a probability of `percent`."""
    if not draw.chance(percent):
        return sentence
    words = draw.one(ASIDES)
    return f"{words} {sentence}" if draw.chance(50) else f"{sentence} {words}"


def claim(draw: Draw, subject: str, predicate: str, holds: bool) -> str:
    """State that the subject did something, or did not; two denials cancel each other.

    30 % of claims start with a denial, so a model that only looks for `never` is right in 70 % of rows.
    """
    denied = draw.chance(30)
    near = " never " if denied == holds else " "
    return f"{_FAR if denied else ''}{subject}{near}{predicate}"


_OPINION_THINGS = ("film", "plot", "cast", "music")
_OPINION_VERBS = ("is", "was", "seems")
_FILLERS = ("in the end", "for me", "on the whole", "at times")
# words before a cue, and what they make of its weight
_MODIFIERS = (("", 2), ("", 2), ("very", 4), ("not", -2), ("not very", -1), ("hardly", -2), ("rather", 1))
# how clauses are joined, and how much each of them counts
_JOINTS = (("{} and {}", 1, 1), ("{} but {}", 1, 2), ("although {} {}", 1, 2), ("{} although {}", 2, 1))


def opinion(draw: Draw, chances: Sequence[int]) -> tuple[str, int]:
    """Draw a sentence and its sentiment: above 0, below 0, or 0 where its clauses balance.

    `chances` are the probabilities, in percent, of a second clause, of a third, and so on.
    """
    text, score = _clause(draw)
    for percent in chances:  # each further clause weighs against all before it together
        if not draw.chance(percent):
            break
        second, weight = _clause(draw)
        form, own, others = draw.one(_JOINTS)
        text, score = form.format(text, second), own * score + others * weight
    if draw.chance(40):
        filler = draw.one(_FILLERS)
        text = f"{filler} {text}" if draw.chance(50) else f"{text} {filler}"
    return text, score


def _clause(draw: Draw) -> tuple[str, int]:
    sign = draw.one((-1, 1))
    words, weight = draw.one(_MODIFIERS)
    cue = draw.common(POSITIVE if sign > 0 else NEGATIVE)
    parts = ["the", draw.one(_OPINION_THINGS), draw.one(_OPINION_VERBS), words, cue]
    return " ".join(part for part in parts if part), sign * weight
