"""Entailment in two classes: does a verdict follow from what is said of a film."""

from formwright.tasks.draw import Draw
from formwright.tasks.mini_glue.make import RowMaker, Texts
from formwright.tasks.mini_glue.opinions import opinion, verdict
from formwright.tasks.task import Task


def _draw(draw: Draw, label: int) -> Texts:
    hypothesis, sign = verdict(draw)
    while True:
        premise, score = opinion(draw, (60,))
        if score and (score * sign < 0) == label:
            return premise, hypothesis


TASK = Task(
    "mini-glue/rte",
    "sequence-classification",
    "accuracy",
    RowMaker("rte", _draw),
    labels=("entailment", "not entailment"),
    chance=0.5,
    about="does an opinion entail a verdict: cue words under negation, intensifiers and contrast",
)
