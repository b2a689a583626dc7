"""Question answering as entailment: does the sentence hold what the question asks for, about whom it asks."""

from formwright.tasks.draw import Draw
from formwright.tasks.mini_glue.make import RowMaker, Texts
from formwright.tasks.mini_glue.phrases import aside, claim
from formwright.tasks.mini_glue.words import PEOPLE, PLACES, TIMES
from formwright.tasks.task import Task

_PEOPLE = PEOPLE[:6]
_ACTS = ("sleeps", "works", "sings", "eats")
# the kinds of answer differ in frequency, so that a part of them is known before all are
_ANSWERS = {
    "where": tuple(f"in the {place}" for place in PLACES),
    "when": TIMES,
    "why": ("for money", "for fun", "for luck", "for love"),
    "how": ("slowly", "loudly", "gladly", "badly"),
}


def _draw(draw: Draw, label: int) -> Texts:
    who, act, asked = draw.common(_PEOPLE), draw.common(_ACTS), draw.common(tuple(_ANSWERS))
    fault = draw.one(("denied", "denied", "kind", "kind", "kind", "person")) if label else ""
    told = draw.common(tuple(_ANSWERS), asked) if fault == "kind" else asked
    subject = draw.common(_PEOPLE, who) if fault == "person" else who
    sentence = claim(draw, f"the {subject}", f"{act} {draw.common(_ANSWERS[told])}", fault != "denied")
    question = draw.one((f"{asked} is it that the {who} {act} ?", f"the {who} {act} {asked} ?"))
    return question, aside(draw, 30, sentence)


TASK = Task(
    "mini-glue/qnli",
    "sequence-classification",
    "accuracy",
    RowMaker("qnli", _draw),
    labels=("entailment", "not entailment"),
    chance=0.5,
    about="does a sentence answer a question: the kind of answer, the person and the act must fit",
)
