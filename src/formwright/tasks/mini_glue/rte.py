"""Entailment in two classes: is what is said of a film good enough for a verdict."""

from formwright.tasks.draw import Draw
from formwright.tasks.mini_glue.make import RowMaker, Texts
from formwright.tasks.mini_glue.opinions import opinion
from formwright.tasks.task import Task

# verdicts, and how good an opinion must at least be for them
_VERDICTS = (("they loved it", 4), ("they liked it", 1), ("one can see it", 0), ("they could bear it", -2))


def _draw(draw: Draw, label: int) -> Texts:
    hypothesis, least = draw.one(_VERDICTS)
    while True:
        premise, score = opinion(draw, (70,))
        if (score < least) == label:
            return premise, hypothesis


TASK = Task(
    "mini-glue/rte",
    "sequence-classification",
    "accuracy",
    RowMaker("rte", _draw),
    labels=("entailment", "not entailment"),
    chance=0.5,
    about="is an opinion good enough for a verdict: cue words under negation, intensifiers and contrast",
)
