"""Similarity: how many parts of one sentence another one shares, synonyms included."""

from formwright.tasks.draw import Draw
from formwright.tasks.mini_glue.make import RowMaker, Texts
from formwright.tasks.mini_glue.phrases import aside, claim
from formwright.tasks.task import Task

# each slot: concepts, each with the words for it
_SLOTS = (
    (("man",), ("woman",), ("child",)),
    (("walked", "strolled"), ("shouted", "yelled"), ("slept", "dozed")),
    (("woods",), ("shop",), ("road",)),
)


def _tell(draw: Draw, concepts: list[int], holds: bool) -> str:
    who, did, where = (draw.one(slot[concept]) for slot, concept in zip(_SLOTS, concepts, strict=True))
    return claim(draw, f"the {who}", f"{did} in the {where}", holds)


def _plain(draw: Draw, concepts: list[int]) -> str:
    who, did, where = (draw.one(slot[concept]) for slot, concept in zip(_SLOTS, concepts, strict=True))
    return aside(draw, 50, draw.one((f"the {who} {did} in the {where}", f"in the {where} the {who} {did}")))


def _draw(draw: Draw, score: int) -> Texts:
    # the score counts the parts that are shared, and 2 for a second sentence that is not denied
    holds = score > 3 or (score > 1 and draw.chance(50))
    shared = score - 2 * holds
    first = [draw.common(range(3)) for _ in _SLOTS]
    second = list(first)
    for slot in draw.some(range(len(_SLOTS)), len(_SLOTS) - shared):
        second[slot] = draw.common(range(3), first[slot])
    return _plain(draw, first), _tell(draw, second, holds)


TASK = Task(
    "mini-glue/stsb",
    "regression",
    "pearson",
    RowMaker("stsb", _draw, classes=6, scores=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0)),
    metrics=("spearman",),
    chance=0.0,
    about="similarity of two sentences from 0 to 5: the parts they share, synonyms included",
)
