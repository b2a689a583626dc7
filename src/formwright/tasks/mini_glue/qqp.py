"""Duplicate questions: different openings of one intent, same or different things asked about."""

from formwright.tasks.mini_glue.draw import Draw
from formwright.tasks.mini_glue.make import Recipe, Texts
from formwright.tasks.task import Task

_INTENTS = (
    ("how do i", "what is the way to"),
    ("why should i", "for what reason do i"),
    ("when can i", "at what time do i"),
)
_ACTS = (("cook", "prepare"), ("buy", "purchase"), ("mend", "repair"), ("keep", "store"))
_THINGS = ("rice", "a bicycle", "an old clock", "shoes")
_ENDS = ("", "quickly", "at home", "without help", "these days")


def _ask(draw: Draw, intent: int, act: int, thing: str) -> str:
    words = [draw.one(_INTENTS[intent]), draw.one(_ACTS[act]), thing, draw.one(_ENDS)]
    return " ".join(word for word in words if word)


def _draw(draw: Draw, label: int) -> Texts:
    intent, act, thing = draw.below(3), draw.below(4), draw.one(_THINGS)
    first = _ask(draw, intent, act, thing)
    if not label:
        match draw.below(3):
            case 0:
                intent = draw.other(range(3), intent)
            case 1:
                act = draw.other(range(4), act)
            case _:
                thing = draw.other(_THINGS, thing)
    return first, _ask(draw, intent, act, thing)


TASK = Task(
    "mini-glue/qqp",
    "sequence-classification",
    "accuracy",
    Recipe("qqp", _draw),
    metrics=("f1",),
    labels=("different", "duplicate"),
    chance=0.5,
    about="do two questions ask the same: intent, act and thing, in different words",
)
