"""Sentences that weigh an opinion: cue words, turned by negation, strengthened by intensifiers, weighed by contrast."""

from collections.abc import Sequence

from formwright.tasks.draw import Draw
from formwright.tasks.mini_glue.words import NEGATIVE, POSITIVE

_THINGS = ("film", "plot", "cast", "music")
_VERBS = ("is", "was", "seems")
_FILLERS = ("in the end", "for me", "on the whole", "at times")
# words before a cue, and what they make of its weight
_MODIFIERS = (("", 2), ("", 2), ("very", 4), ("not", -2), ("not very", -1), ("hardly", -2), ("rather", 1))
# how clauses are joined, and how much each of them counts
_JOINTS = (("{} and {}", 1, 1), ("{} but {}", 1, 2), ("although {} {}", 1, 2), ("{} although {}", 2, 1))


def opinion(draw: Draw, chances: Sequence[int]) -> tuple[str, int]:
    """Draw a sentence, and how good what it says is: above 0, below 0, or 0 where its clauses balance.

    `chances` are those of a second clause, of a third after it, and so on, in percent.
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
    parts = ["the", draw.one(_THINGS), draw.one(_VERBS), words, cue]
    return " ".join(part for part in parts if part), sign * weight
