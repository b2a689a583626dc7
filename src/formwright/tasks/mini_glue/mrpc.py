"""Paraphrase: active and passive, synonyms, and who did what to whom."""

from formwright.tasks.mini_glue.draw import Draw
from formwright.tasks.mini_glue.make import Recipe, Texts
from formwright.tasks.mini_glue.words import PEOPLE, PLACES
from formwright.tasks.task import Task

_PEOPLE, _PLACES = PEOPLE[:4], PLACES[:4]
_VERBS = (("helped", "assisted"), ("found", "discovered"), ("praised", "lauded"), ("paid", "rewarded"))

Event = tuple[str, int, str, str]


def _tell(draw: Draw, event: Event) -> str:
    who, verb, whom, place = event
    word = draw.one(_VERBS[verb])
    if draw.chance(50):
        return f"the {who} {word} the {whom} in the {place}"
    return f"the {whom} was {word} by the {who} in the {place}"


def _changed(draw: Draw, event: Event) -> Event:
    who, verb, whom, place = event
    match draw.below(4):
        case 0:
            return whom, verb, who, place
        case 1:
            return who, draw.other(range(len(_VERBS)), verb), whom, place
        case 2:
            return who, verb, whom, draw.other(_PLACES, place)
        case _:
            return who, verb, draw.other(_PEOPLE, who, whom), place


def _draw(draw: Draw, label: int) -> Texts:
    who, whom = draw.some(_PEOPLE, 2)
    event = (who, draw.below(len(_VERBS)), whom, draw.one(_PLACES))
    return draw.aside(50, _tell(draw, event)), _tell(draw, event if label else _changed(draw, event))


TASK = Task(
    "mini-glue/mrpc",
    "sequence-classification",
    "accuracy",
    Recipe("mrpc", _draw),
    metrics=("f1",),
    labels=("different", "paraphrase"),
    chance=0.5,
    about="do two sentences tell the same event: synonyms, active and passive, exchanged roles",
)
