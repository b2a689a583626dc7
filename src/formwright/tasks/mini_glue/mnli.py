"""Entailment in three classes: quantifiers, negation, opposites, and facts that the premise does not tell."""

from formwright.tasks.mini_glue.draw import Draw
from formwright.tasks.mini_glue.make import Recipe, Texts
from formwright.tasks.task import Task

_KINDS = ("dogs", "birds", "children", "sailors")
_STATES = (("awake", "asleep"), ("young", "old"), ("loud", "silent"), ("rich", "poor"))


def _draw(draw: Draw, label: int) -> Texts:
    kind, topic, side = draw.one(_KINDS), draw.below(len(_STATES)), draw.below(2)
    state, opposite = _STATES[topic][side], _STATES[topic][1 - side]
    premise = f"all the {kind} are {state}"
    if draw.chance(60):
        more = _STATES[draw.other(range(len(_STATES)), topic)][draw.below(2)]
        where = draw.one(("in the park", "on the ship", "at home"))
        premise = draw.one((f"{premise} {where}", f"{premise} and {more}", f"{where} {premise}"))
    match label:
        case 0:
            hypothesis = draw.one((f"some {kind} are {state}", f"the {kind} are not {opposite}"))
        case 1:
            other = _STATES[draw.other(range(len(_STATES)), topic)][draw.below(2)]
            hypothesis = draw.one((f"some {kind} are {other}", f"the {draw.other(_KINDS, kind)} are {state}"))
        case _:
            hypothesis = draw.one((f"some {kind} are {opposite}", f"the {kind} are not {state}", f"no {kind} are {state}"))
    return draw.aside(50, premise), hypothesis


TASK = Task(
    "mini-glue/mnli",
    "sequence-classification",
    "accuracy",
    Recipe("mnli", _draw, classes=3),
    labels=("entailment", "neutral", "contradiction"),
    chance=1 / 3,
    about="does a premise entail, leave open or contradict a hypothesis: quantifiers, negation, opposites",
)
