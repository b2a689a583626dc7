from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.studies import SPACE, design_of, small_study

from formwright.core.records import Budget, History, Objective, Observation, Request, Spent, Trial
from formwright.cost import macs, params
from formwright.report.facts import study_facts
from formwright.report.trial_rows import TrialRow, progress, trial_rows
from formwright.study.events import Event, Kind

CARD = SPACE.card(design_of(0))
FOUND = Observation({"accuracy": 0.5, "latency_ms": 7.0, "params": 1.0}, Spent(2.5, 300, 9))
LIMIT = Objective("latency_ms", "min", 5.0)
MAX, MIN = Objective("accuracy", "max"), Objective("accuracy", "min")


def event(kind: Kind, at: float, number: int | None = 0, worker: str = "first", **data: object) -> Event:
    return Event(round(10 * at) + 1, kind, number, worker, at, data)


def only(trial: Trial, *events: Event, limits: tuple[Objective, ...] = ()) -> TrialRow:
    (row,) = trial_rows(History((trial,)), events, limits, 32)
    return row


def test_a_finished_trial() -> None:
    trial = Trial(0, Request(CARD, Budget(300), 7), "finished", FOUND)
    row = only(trial, event("asked", 100.0), event("claimed", 101.0), event("told", 105.0))
    assert (row.number, row.state, row.parent, row.budget, row.steps) == (0, "finished", 7, 300, 300)
    assert (row.seconds, row.started, row.finished, row.elapsed, row.worker) == (2.5, 101.0, 105.0, 5.0, "first")
    assert row.costs == {"params": params(CARD), "macs": macs(CARD, 32)}
    assert row.digest == CARD.digest


def test_metrics_win_over_costs_of_the_same_name() -> None:
    row = only(Trial(0, Request(CARD), "finished", FOUND))
    assert row.values["params"] == 1.0
    assert row.values["macs"] == macs(CARD, 32)


def test_a_failed_trial_took_the_time_until_it_failed() -> None:
    row = only(Trial(0, Request(CARD), "failed", None, "why"), event("claimed", 101.0), event("failed", 104.0))
    assert (row.seconds, row.reason, row.steps, row.feasible) == (3.0, "why", None, False)


def test_a_trial_under_way_has_no_end_and_its_last_worker() -> None:
    events = event("asked", 1.0), event("claimed", 1.0), event("claimed", 9.0, worker="second")
    row = only(Trial(0, Request(CARD)), *events)
    assert (row.state, row.worker, row.started) == ("pending", "second", 9.0)
    assert row.seconds is row.finished is row.elapsed is None


def test_pauses_between_runs_do_not_count() -> None:
    starts = event("started", 10.0, None, begins=True), event("started", 1000.0, None, begins=True)
    events = (
        starts[0],
        event("asked", 11.0),
        event("note", 14.0),
        starts[1],
        event("claimed", 1002.0),
        event("told", 1003.0),
    )
    assert only(Trial(0, Request(CARD), "finished", FOUND), *events).elapsed == 4.0


def test_limits() -> None:
    trial = Trial(0, Request(CARD), "finished", FOUND)
    assert only(trial).feasible
    assert not only(trial, limits=(LIMIT,)).feasible
    # what an observation does not tell was checked before
    assert only(trial, limits=(Objective("flops", "min", 0.0),)).feasible


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> TrialRow:
    folder: Path = tmp_path_factory.mktemp("study")
    return study_facts(small_study(folder), SPACE).trials[0]


def made(row: TrialRow, scores: list[float], ends: list[float]) -> list[TrialRow]:
    return [
        replace(row, number=number, metrics={"accuracy": score}, elapsed=end, feasible=True)
        for number, (score, end) in enumerate(zip(scores, ends, strict=True))
    ]


@pytest.mark.parametrize(
    ("scores", "goal", "corners"),
    [
        ([0.5, 0.4, 0.7, 0.7], MAX, ((0, 0.5), (2, 0.7), (3, 0.7))),
        ([0.5, 0.4, 0.7], MIN, ((0, 0.5), (1, 0.4), (2, 0.4))),
    ],
)
def test_progress_has_corners_and_an_end(row: TrialRow, scores: list[float], goal: Objective, corners: object) -> None:
    assert progress(made(row, scores, [*range(len(scores))]), goal).by_number == corners
    assert progress(made(row, [0.5, 0.9], [10.0, 4.0]), MAX).by_seconds == ((4.0, 0.9), (10.0, 0.9)), "in order of ends"


def test_what_breaks_a_limit_is_no_progress(row: TrialRow) -> None:
    rows = made(row, [0.5, 0.9], [1, 2])
    rows[1] = replace(rows[1], feasible=False)
    assert progress(rows, MAX).by_number == ((0, 0.5),)


def test_nothing_yet(row: TrialRow) -> None:
    pending = replace(row, state="pending", metrics={}, feasible=False, elapsed=None)
    assert progress([pending], MAX).by_number == progress([], MAX).by_seconds == ()
