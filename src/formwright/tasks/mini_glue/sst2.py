"""Sentiment: cue words, turned by negation, strengthened by intensifiers, and weighed by contrast."""

from formwright.tasks.draw import Draw
from formwright.tasks.mini_glue.make import RowMaker, Texts
from formwright.tasks.mini_glue.words import NEGATIVE, POSITIVE
from formwright.tasks.task import Task

_THINGS = ("film", "plot", "cast", "music")
_VERBS = ("is", "was", "seems")
_FILLERS = ("in the end", "for me", "on the whole", "at times")
# words before a cue, and what they make of its weight
_MODIFIERS = (("", 2), ("", 2), ("very", 4), ("not", -2), ("not very", -1), ("hardly", -2), ("rather", 1))
# how clauses are joined, and how much each of them counts
_JOINTS = (("{} and {}", 1, 1), ("{} but {}", 1, 2), ("although {} {}", 1, 2), ("{} although {}", 2, 1))


def _clause(draw: Draw) -> tuple[str, int]:
    sign = draw.one((-1, 1))
    words, weight = draw.one(_MODIFIERS)
    cue = draw.common(POSITIVE if sign > 0 else NEGATIVE)
    parts = ["the", draw.one(_THINGS), draw.one(_VERBS), words, cue]
    return " ".join(part for part in parts if part), sign * weight


def _sentence(draw: Draw) -> tuple[str, int]:
    text, score = _clause(draw)
    for percent in (80, 40):  # a second clause, and a third, which weighs against the first two together
        if not draw.chance(percent):
            break
        second, weight = _clause(draw)
        form, own, others = draw.one(_JOINTS)
        text, score = form.format(text, second), own * score + others * weight
    if draw.chance(40):
        filler = draw.one(_FILLERS)
        text = f"{filler} {text}" if draw.chance(50) else f"{text} {filler}"
    return text, score


def _draw(draw: Draw, label: int) -> Texts:
    while True:
        text, score = _sentence(draw)
        if (score > 0) == label and score:
            return (text,)


TASK = Task(
    "mini-glue/sst2",
    "sequence-classification",
    "accuracy",
    RowMaker("sst2", _draw),
    labels=("negative", "positive"),
    chance=0.5,
    about="sentiment of a sentence: cue words under negation, intensifiers and contrast",
)
