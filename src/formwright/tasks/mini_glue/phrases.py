"""Phrases that several of the generated tasks share."""

from formwright.tasks.draw import Draw
from formwright.tasks.mini_glue.words import ASIDES

_FAR = "it is false that "


def aside(draw: Draw, percent: int, sentence: str) -> str:
    """Put words that mean nothing before or behind a sentence, in that many of a hundred cases."""
    if not draw.chance(percent):
        return sentence
    words = draw.one(ASIDES)
    return f"{words} {sentence}" if draw.chance(50) else f"{sentence} {words}"


def claim(draw: Draw, subject: str, predicate: str, holds: bool) -> str:
    """Say that the subject did something, or did not; a near and a far denial cancel each other.

    Three of ten claims are denied from the beginning. So a model that only sees `never` is right in seven of ten.
    """
    denied = draw.chance(30)
    near = " never " if denied == holds else " "
    return f"{_FAR if denied else ''}{subject}{near}{predicate}"
