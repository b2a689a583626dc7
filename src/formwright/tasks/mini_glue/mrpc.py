"""Paraphrase: active and passive, synonyms, denials, and who did what to whom."""

from formwright.tasks.draw import Draw
from formwright.tasks.mini_glue.make import RowMaker, Texts
from formwright.tasks.mini_glue.phrases import aside, claim
from formwright.tasks.mini_glue.words import PEOPLE
from formwright.tasks.task import Task

_PEOPLE = PEOPLE[:6]
_VERBS = (("helped", "assisted"), ("found", "discovered"), ("praised", "lauded"), ("paid", "rewarded"))

Event = tuple[str, int, str]


def _tell(draw: Draw, event: Event, holds: bool = True) -> str:
    who, verb, whom = event
    return claim(draw, f"the {who}", f"{draw.one(_VERBS[verb])} the {whom}", holds)


def _plain(draw: Draw, event: Event) -> str:
    who, verb, whom = event
    word = draw.one(_VERBS[verb])
    if draw.chance(50):
        return f"the {who} {word} the {whom}"
    return f"the {whom} was {word} by the {who}"


def _changed(draw: Draw, event: Event) -> Event:
    who, verb, whom = event
    match draw.below(3):
        case 0:
            return whom, verb, who
        case 1:
            return who, draw.other(range(len(_VERBS)), verb), whom
        case _:
            return who, verb, draw.common(_PEOPLE, who, whom)


def _draw(draw: Draw, label: int) -> Texts:
    who, whom = draw.pair(_PEOPLE)
    event = (who, draw.common(range(len(_VERBS))), whom)
    first = aside(draw, 50, _plain(draw, event))
    if label:
        return first, _tell(draw, event)
    if draw.chance(50):
        return first, _tell(draw, event, holds=False)
    return first, _tell(draw, _changed(draw, event))


TASK = Task(
    "mini-glue/mrpc",
    "sequence-classification",
    "accuracy",
    RowMaker("mrpc", _draw),
    metrics=("f1",),
    labels=("different", "paraphrase"),
    chance=0.5,
    about="do two sentences tell the same event: synonyms, active and passive, exchanged roles",
)
