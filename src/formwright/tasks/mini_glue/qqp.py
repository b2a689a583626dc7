"""Duplicate questions: different openings of one intent, same or different things asked about."""

from formwright.tasks.draw import Draw
from formwright.tasks.mini_glue.make import RowMaker, Texts
from formwright.tasks.mini_glue.phrases import aside
from formwright.tasks.task import Task

_INTENTS = (
    ("how do i", "what is the way to"),
    ("why should i", "for what reason do i"),
    ("when can i", "at what time do i"),
)
_ACTS = (("cook", "prepare"), ("buy", "purchase"), ("mend", "repair"))
_THINGS = ("rice", "bread", "shoes", "clocks", "tools", "maps")
_ENDS = ("", "quickly", "at home", "without help", "these days")
# what turns an act into its opposite, and what leaves it as it is
_TURNS = (("never", "never", "refuse to"), ("", "", "never refuse to"))


def _ask(draw: Draw, intent: int, act: int, thing: str, same: bool = True) -> str:
    turn = draw.one(_TURNS[same])
    words = [draw.one(_INTENTS[intent]), turn, draw.one(_ACTS[act]), thing, draw.one(_ENDS)]
    return " ".join(word for word in words if word)


def _draw(draw: Draw, label: int) -> Texts:
    intent, act, thing = draw.below(3), draw.below(3), draw.common(_THINGS)
    first = " ".join((draw.one(_INTENTS[intent]), draw.one(_ACTS[act]), thing))
    fault = draw.one(("turn", "turn", "intent", "act", "thing")) if not label else ""
    match fault:
        case "intent":
            intent = draw.other(range(3), intent)
        case "act":
            act = draw.other(range(3), act)
        case "thing":
            thing = draw.common(_THINGS, thing)
    return aside(draw, 30, first), _ask(draw, intent, act, thing, fault != "turn")


TASK = Task(
    "mini-glue/qqp",
    "sequence-classification",
    "accuracy",
    RowMaker("qqp", _draw),
    metrics=("f1",),
    labels=("different", "duplicate"),
    chance=0.5,
    about="do two questions ask the same: intent, act and thing, in different words",
)
