"""Entailment in two classes: a longer premise tells two events, the hypothesis one of them, or one with parts mixed up."""

from formwright.tasks.mini_glue.draw import Draw
from formwright.tasks.mini_glue.make import Recipe, Texts
from formwright.tasks.mini_glue.words import PEOPLE
from formwright.tasks.task import Task

_PEOPLE = PEOPLE[:4]
_ACTS = ("sang", "slept", "left", "won")


def _draw(draw: Draw, label: int) -> Texts:
    first, second = draw.some(_PEOPLE, 2)
    act, other = draw.some(_ACTS, 2)
    denied = draw.below(3)  # 0: neither event is denied, 1: the first, 2: the second
    parts = [f"the {first} {'never ' if denied == 1 else ''}{act}", f"the {second} {'never ' if denied == 2 else ''}{other}"]
    premise = draw.one((" while ", " and ", " after ")).join(parts)
    true = [parts[0], parts[1]]
    false = [f"the {first} {other}", f"the {second} {act}"]
    false += [f"the {first} {'' if denied == 1 else 'never '}{act}", f"the {second} {'' if denied == 2 else 'never '}{other}"]
    return draw.aside(70, premise), draw.one(true if label == 0 else false)


TASK = Task(
    "mini-glue/rte",
    "sequence-classification",
    "accuracy",
    Recipe("rte", _draw),
    labels=("entailment", "not entailment"),
    chance=0.5,
    about="does a premise of two events entail a hypothesis: who did which, and what was denied",
)
