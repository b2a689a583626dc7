"""Entailment in three classes: quantifiers, negation, opposites, and facts that the premise does not tell."""

from formwright.tasks.draw import Draw
from formwright.tasks.mini_glue.make import RowMaker, Texts
from formwright.tasks.mini_glue.phrases import aside
from formwright.tasks.task import Task

_KINDS = ("dogs", "birds", "children", "sailors", "cats", "women")
_STATES = (("awake", "asleep"), ("young", "old"), ("loud", "silent"), ("rich", "poor"))
_WHERE = ("in the park", "on the ship", "at home")


def _premise(draw: Draw, kind: str, state: str, more: str) -> str:
    premise = f"all the {kind} are {state}"
    if draw.chance(40):
        return premise
    where = draw.one(_WHERE)
    return draw.one((f"{premise} {where}", f"{premise} and {more}", f"{where} {premise}"))


def _draw(draw: Draw, label: int) -> Texts:
    kind = draw.common(_KINDS)
    # the premise tells the first topic and perhaps the second; of the third it tells nothing
    topic = draw.common(_STATES)
    state, opposite = topic if draw.chance(70) else topic[::-1]
    more, untold = (draw.one(pair) for pair in draw.some([pair for pair in _STATES if pair != topic], 2))
    hypotheses = (
        (f"some {kind} are {state}", f"the {kind} are not {opposite}"),
        (f"some {kind} are {untold}", f"the {draw.common(_KINDS, kind)} are {state}"),
        (f"some {kind} are {opposite}", f"the {kind} are not {state}", f"no {kind} are {state}"),
    )
    return aside(draw, 50, _premise(draw, kind, state, more)), draw.one(hypotheses[label])


TASK = Task(
    "mini-glue/mnli",
    "sequence-classification",
    "accuracy",
    RowMaker("mnli", _draw, classes=3),
    labels=("entailment", "neutral", "contradiction"),
    chance=1 / 3,
    about="does a premise entail, leave open or contradict a hypothesis: quantifiers, negation, opposites",
)
