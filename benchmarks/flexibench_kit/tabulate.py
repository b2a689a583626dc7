"""Score a design on validation and on test along its training: for the table of a benchmark, never for a search.

A table has to hold what a search on it would find in the end, so the test split is opened for every design of it.
Whoever searches on the table is shown the validation scores alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.evaluate.context import Context
from formwright.evaluate.training import OUTSIDE, Trainer, require_finite_scores
from formwright.tasks.test_split import open_test
from formwright.train.fit import Run, fit, fresh_model
from formwright.train.judge import judge
from formwright.train.loop import enough_memory
from formwright.train.prepare import Prepared, PreparedRows, prepare


@dataclass(frozen=True)
class Point:
    """The scores of a design after some steps of its training."""

    steps: int
    validation: Mapping[str, float]
    test: Mapping[str, float]


def tabulate(trainer: Trainer, card: Card, seed: int, marks: Sequence[int]) -> list[Point]:
    """Train a card once and judge it on both splits after each of `marks` steps.

    The learning rate falls as in a training of all steps of the recipe, wherever the last mark is. What cannot be
    scored raises `EvaluationFailed`.
    """
    training = trainer.seeded(Context(seed))
    steps = training.recipe.steps
    if list(marks) != sorted(set(marks)) or not marks or marks[0] < 1 or marks[-1] > steps:
        raise IllegalInput(f"the marks must rise from 1 to at most {steps} steps, not {list(marks)}")
    prepared, points = prepare(trainer.task, card, training.length, trainer.tokeniser), list[Point]()

    def look(step: int, _: float) -> None:
        if step + 1 in marks[:-1]:
            points.append(point(step + 1, judge(model, prepared, prepared.validation)))

    def point(steps: int, validation: Mapping[str, float]) -> Point:
        require_finite_scores(validation, steps)
        tested = judge(model, prepared, _test_part(prepared))
        require_finite_scores(tested, steps, "test")
        return Point(steps, validation, tested)

    with enough_memory(OUTSIDE):
        model = fresh_model(card, prepared, training)
        trained = fit(model, prepared, training, Run(until=marks[-1], after_step=look))
        return [*points, point(marks[-1], trained.metrics)]


@lru_cache(maxsize=2)
def _test_part(prepared: Prepared) -> PreparedRows:
    """Encode the test rows once for all designs that read them alike."""
    return prepared.part(open_test(prepared.task))
