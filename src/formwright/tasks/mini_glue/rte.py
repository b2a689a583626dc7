"""Entailment in two classes: of two events, which may be denied, the hypothesis tells one, or mixes them up."""

from formwright.tasks.draw import Draw
from formwright.tasks.mini_glue.make import RowMaker, Texts
from formwright.tasks.mini_glue.phrases import aside, claim
from formwright.tasks.mini_glue.words import PEOPLE
from formwright.tasks.task import Task

_PEOPLE = PEOPLE[:6]
_ACTS = ("sang", "slept", "left", "won", "fell", "lied")
_JOINTS = ("while", "and", "after", "before")


def _draw(draw: Draw, label: int) -> Texts:
    people, acts = draw.pair(_PEOPLE), draw.pair(_ACTS)
    asked = draw.below(2)
    mixed = label == 1 and draw.chance(40)
    holds = [draw.chance(70), draw.chance(70)]
    if not mixed:
        holds[asked] = label == 0
    first, second = (claim(draw, f"the {who}", act, true) for who, act, true in zip(people, acts, holds, strict=True))
    told = acts[1 - asked] if mixed else acts[asked]
    premise = f"{first} {draw.one(_JOINTS)} {second}"
    return aside(draw, 30, premise), f"the {people[asked]} {told}"


TASK = Task(
    "mini-glue/rte",
    "sequence-classification",
    "accuracy",
    RowMaker("rte", _draw),
    labels=("entailment", "not entailment"),
    chance=0.5,
    about="does a premise of two events entail a hypothesis: who did which, and what was denied",
)
