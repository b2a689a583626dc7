"""The best score so far never falls, and changes where a better trial ends."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.studies import SPACE, small_study

from formwright.core.records import Objective
from formwright.report.facts import study_facts
from formwright.report.progress import progress
from formwright.report.rows import TrialRow

MAX, MIN = Objective("accuracy", "max"), Objective("accuracy", "min")


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> TrialRow:
    folder: Path = tmp_path_factory.mktemp("study")
    return study_facts(small_study(folder), SPACE).trials[0]


def made(row: TrialRow, scores: list[float], ends: list[float]) -> list[TrialRow]:
    return [
        replace(row, number=number, metrics={"accuracy": score}, elapsed=end, feasible=True)
        for number, (score, end) in enumerate(zip(scores, ends, strict=True))
    ]


def test_corners_and_the_end(row: TrialRow) -> None:
    found = progress(made(row, [0.5, 0.4, 0.7, 0.7], [1, 2, 3, 4]), MAX)
    assert found.by_number == ((0, 0.5), (2, 0.7), (3, 0.7))


def test_smaller_may_be_better(row: TrialRow) -> None:
    assert progress(made(row, [0.5, 0.4, 0.7], [1, 2, 3]), MIN).by_number == ((0, 0.5), (1, 0.4), (2, 0.4))


def test_time_follows_the_order_of_ends(row: TrialRow) -> None:
    assert progress(made(row, [0.5, 0.9], [10.0, 4.0]), MAX).by_seconds == ((4.0, 0.9), (10.0, 0.9))


def test_what_breaks_a_limit_is_no_progress(row: TrialRow) -> None:
    rows = made(row, [0.5, 0.9], [1, 2])
    rows[1] = replace(rows[1], feasible=False)
    assert progress(rows, MAX).by_number == ((0, 0.5),)


def test_nothing_yet(row: TrialRow) -> None:
    pending = replace(row, state="pending", metrics={}, feasible=False, elapsed=None)
    assert progress([pending], MAX).by_number == progress([], MAX).by_seconds == ()
