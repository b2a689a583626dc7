from pathlib import Path

import pytest
from benchmarks.flexibench_kit.tabulate import tabulate
from tests.evaluate.toy import TASK, UNTESTED, card, trainer

from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import Budget, Request
from formwright.evaluate.context import Context
from formwright.evaluate.final import Final

CARD = card(8, 16)


def test_scores_along_the_training_are_those_of_trainings_that_end_there() -> None:
    points = tabulate(trainer(), CARD, 3, (3, 6, 12))
    assert [point.steps for point in points] == [3, 6, 12]
    for point in points:
        found = trainer().observe(Request(CARD, Budget(point.steps)), Context(3))
        assert point.validation == found.metrics


def test_the_last_test_score_is_that_of_the_final_evaluation(tmp_path: Path) -> None:
    (point,) = tabulate(trainer(), CARD, 0, (12,))
    verdict = Final(trainer()).verdict(Request(CARD), Context(0, tmp_path))
    assert (point.validation, point.test) == (verdict.validation, verdict.test)
    assert point.validation != point.test


def test_the_training_is_that_of_the_whole_schedule_and_its_seed() -> None:
    often = tabulate(trainer(), CARD, 0, range(1, 13))
    assert often[-1:] == tabulate(trainer(), CARD, 0, [12])
    assert tabulate(trainer(), CARD, 0, [12]) != tabulate(trainer(), CARD, 1, [12])
    assert tabulate(trainer(steps=12), CARD, 0, [6]) != tabulate(trainer(steps=6), CARD, 0, [6])


@pytest.mark.parametrize("marks", [(), (0, 3), (3, 3), (6, 3), (3, 13)])
def test_marks_that_are_no_curve_are_refused(marks: tuple[int, ...]) -> None:
    with pytest.raises(IllegalInput, match="the marks must rise from 1 to at most 12 steps"):
        tabulate(trainer(), CARD, 0, marks)


def test_what_cannot_be_tabulated() -> None:
    with pytest.raises(IllegalInput, match="no test rows"):
        tabulate(trainer(task=UNTESTED), CARD, 0, [12])
    with pytest.raises(EvaluationFailed, match="lower the learning rate"):
        tabulate(trainer(task=TASK, learning_rate=1e30), CARD, 0, [12])
