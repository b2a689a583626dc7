"""Sentiment: cue words, turned by negation, strengthened by intensifiers, and weighed by contrast."""

from formwright.tasks.draw import Draw
from formwright.tasks.mini_glue.make import RowMaker, Texts
from formwright.tasks.mini_glue.opinions import opinion
from formwright.tasks.task import Task


def _draw(draw: Draw, label: int) -> Texts:
    while True:
        text, score = opinion(draw, (80, 40))
        if (score > 0) == label and score:
            return (text,)


TASK = Task(
    "mini-glue/sst2",
    "sequence-classification",
    "accuracy",
    RowMaker("sst2", _draw),
    labels=("negative", "positive"),
    chance=0.5,
    about="sentiment of a sentence: cue words under negation, intensifiers and contrast",
)
