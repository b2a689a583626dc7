"""Entailment in three classes: an opinion is good enough for a verdict, contradicts it, or leaves it open."""

from formwright.tasks.draw import Draw
from formwright.tasks.mini_glue.make import RowMaker, Texts
from formwright.tasks.mini_glue.opinions import opinion
from formwright.tasks.task import Task

# verdicts, from which weight of an opinion on they follow, and up to which one they are contradicted
_VERDICTS = (("they loved it", 5, 0), ("they liked it", 2, -2), ("they could bear it", -1, -5))


def _draw(draw: Draw, label: int) -> Texts:
    hypothesis, enough, too_little = draw.one(_VERDICTS)
    while True:
        premise, score = opinion(draw, (70,))
        if (score < enough) + (score <= too_little) == label:
            return premise, hypothesis


TASK = Task(
    "mini-glue/mnli",
    "sequence-classification",
    "accuracy",
    RowMaker("mnli", _draw, classes=3),
    labels=("entailment", "neutral", "contradiction"),
    chance=1 / 3,
    about="does an opinion entail a verdict, leave it open or contradict it: negation, intensifiers and contrast",
)
