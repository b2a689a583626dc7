"""Entailment in three classes: an opinion speaks for a verdict, against it, or for neither side."""

from formwright.tasks.draw import Draw
from formwright.tasks.mini_glue.make import RowMaker, Texts
from formwright.tasks.mini_glue.opinions import opinion, verdict
from formwright.tasks.task import Task


def _draw(draw: Draw, label: int) -> Texts:
    hypothesis, sign = verdict(draw)
    while True:
        premise, score = opinion(draw, (80, 20))
        if _label(score * sign) == label:
            return premise, hypothesis


def _label(agreement: int) -> int:
    return 0 if agreement > 0 else 2 if agreement < 0 else 1


TASK = Task(
    "mini-glue/mnli",
    "sequence-classification",
    "accuracy",
    RowMaker("mnli", _draw, classes=3),
    labels=("entailment", "neutral", "contradiction"),
    chance=1 / 3,
    about="does an opinion entail a verdict, contradict it, or balance: negation, intensifiers and contrast",
)
