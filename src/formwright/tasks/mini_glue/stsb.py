"""Similarity: how many parts of one sentence another one shares, synonyms included."""

from formwright.tasks.mini_glue.draw import Draw
from formwright.tasks.mini_glue.make import Recipe, Texts
from formwright.tasks.task import Task

# each slot: concepts, each with two words for it
_SLOTS = (
    (("man", "fellow"), ("woman", "lady"), ("child", "kid"), ("dog", "hound")),
    (("walks", "strolls"), ("shouts", "yells"), ("sleeps", "dozes"), ("jumps", "leaps")),
    (("slowly", "lazily"), ("happily", "gladly"), ("again", "anew"), ("alone", "solo")),
    (("home", "house"), ("woods", "forest"), ("shop", "store"), ("road", "street")),
    (("today", "now"), ("daily", "always"), ("early", "soon"), ("late", "tardily")),
)


def _tell(draw: Draw, concepts: list[int]) -> str:
    who, does, how, where, when = (draw.one(slot[concept]) for slot, concept in zip(_SLOTS, concepts, strict=True))
    return draw.one((f"the {who} {does} {how} in the {where} {when}", f"{when} in the {where} the {who} {does} {how}"))


def _draw(draw: Draw, shared: int) -> Texts:
    first = [draw.below(4) for _ in _SLOTS]
    second = list(first)
    for slot in draw.some(range(len(_SLOTS)), len(_SLOTS) - shared):
        second[slot] = draw.other(range(4), first[slot])
    return _tell(draw, first), _tell(draw, second)


TASK = Task(
    "mini-glue/stsb",
    "regression",
    "pearson",
    Recipe("stsb", _draw, classes=6, scores=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0)),
    metrics=("spearman",),
    chance=0.0,
    about="similarity of two sentences from 0 to 5: the parts they share, synonyms included",
)
