"""Question answering as entailment: does the sentence hold what the question asks for, about whom it asks."""

from formwright.tasks.mini_glue.draw import Draw
from formwright.tasks.mini_glue.make import Recipe, Texts
from formwright.tasks.mini_glue.words import PEOPLE, PLACES, TIMES
from formwright.tasks.task import Task

_PEOPLE = PEOPLE[:4]
_ACTS = ("sleeps", "works", "sings", "eats")
_ASKED = ("where", "when", "why")
_REASONS = ("for money", "for fun", "by mistake", "out of habit")


def _told(draw: Draw, kind: str) -> str:
    match kind:
        case "where":
            return f"in the {draw.one(PLACES)}"
        case "when":
            return draw.one(TIMES)
        case _:
            return draw.one(_REASONS)


def _draw(draw: Draw, label: int) -> Texts:
    who, act, asked = draw.one(_PEOPLE), draw.one(_ACTS), draw.one(_ASKED)
    question = draw.one((f"{asked} is it that the {who} {act} ?", f"the {who} {act} {asked} ?"))
    told = list(draw.some(_ASKED, 1 + draw.below(2)))
    if label == 1 or draw.chance(50):
        fault = draw.below(3) if label == 1 else 3
    else:
        fault = 3
    if fault == 0:
        told = [kind for kind in _ASKED if kind != asked][: len(told)]
    elif asked not in told:
        told[0] = asked
    subject = draw.other(_PEOPLE, who) if fault == 1 else who
    verb = draw.other(_ACTS, act) if fault == 2 else act
    return question, draw.aside(50, " ".join([f"the {subject} {verb}", *(_told(draw, kind) for kind in told)]))


TASK = Task(
    "mini-glue/qnli",
    "sequence-classification",
    "accuracy",
    Recipe("qnli", _draw),
    labels=("entailment", "not entailment"),
    chance=0.5,
    about="does a sentence answer a question: the kind of answer, the person and the act must fit",
)
