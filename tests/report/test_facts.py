"""Facts follow from the log alone, whether the study is new, running or over."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.studies import (
    SPACE,
    WORKER,
    ask,
    compressed_facts,
    deliver,
    design_of,
    fail,
    new_log,
    small_study,
    tell,
)

from formwright.core.records import Budget, History, Objective, Observation, Request, Spent, Trial
from formwright.cost import macs, params
from formwright.report.facts import TrialRow, progress, study_facts, trial_rows
from formwright.study.events import Event, Kind


def test_the_facts_of_a_running_study(tmp_path: Path) -> None:
    log = small_study(tmp_path)
    facts = study_facts(log, SPACE)
    assert (facts.name, facts.run.command) == ("tried", "formwright search --seed 0")
    assert [row.state for row in facts.trials] == ["finished"] * 4 + ["failed", "pending"]
    assert [str(goal) for goal in facts.goals] == ["accuracy:max", "params:min"]
    ledger = facts.ledger
    assert (ledger.finished, ledger.failed, ledger.pending) == (4, 1, 1)
    assert (ledger.spent.seconds, ledger.spent.steps, ledger.spent.macs) == (10.0, 1200, 4 * 10**9)
    assert facts.over == ""
    assert [model.role for model in facts.models] == ["front", "earlier", "baseline"]
    assert (facts.baseline, facts.found) == (facts.models[2], facts.models[0])
    sizes = [params(SPACE.card(design_of(number))) for number in range(4)]
    scores = [0.61, 0.74, 0.69, 0.74]
    beaten = [
        any(
            scores[other] >= scores[one]
            and sizes[other] <= sizes[one]
            and (scores[other], sizes[other]) != (scores[one], sizes[one])
            for other in range(4)
        )
        for one in range(4)
    ]
    assert facts.front == tuple(number for number in range(4) if not beaten[number])
    assert facts.best == min((1, 3), key=lambda number: sizes[number])
    assert study_facts(log, SPACE) == facts


def test_limits_keep_trials_off_the_front(tmp_path: Path) -> None:
    log = small_study(tmp_path, objectives=["accuracy:max"], limits=["accuracy<=0.7"])
    facts = study_facts(log, SPACE)
    assert facts.front == (2,)
    assert facts.best_row is facts.trials[2]
    assert facts.progress.by_number[-1] == (2, 0.69)


def test_a_study_without_results(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    facts = study_facts(log, SPACE)
    assert (facts.trials, facts.best, facts.best_row, facts.front, facts.run.as_of) == ((), None, None, (), None)
    assert (facts.baseline, facts.found) == (None, None)
    assert facts.ledger.elapsed == 0.0
    ask(log, 0)
    fail(log, 0, "out of memory")
    assert study_facts(log, SPACE).best is None


def test_a_study_ends_and_may_be_taken_up_again(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.append("started", WORKER, {"begins": True})
    ask(log, 0)
    tell(log, 0, accuracy=0.5)
    log.append("stopped", WORKER, {"reason": "1 trial"})
    assert study_facts(log, SPACE).over == "1 trial"
    log.append("note", WORKER, {"command": "x"})
    assert study_facts(log, SPACE).over == "1 trial"
    log.append("started", WORKER, {"begins": True})
    assert study_facts(log, SPACE).over == ""


@pytest.mark.parametrize("training", [{}, {"length": 0}, {"length": "long"}, None])
def test_operations_are_counted_at_some_length_in_any_case(tmp_path: Path, training: object) -> None:
    long = study_facts(small_study(tmp_path, training=training), SPACE)
    short = study_facts(small_study(tmp_path / "other"), SPACE)
    assert long.trials[0].costs["macs"] > short.trials[0].costs["macs"]


def test_a_better_design_supersedes_a_delivered_model(tmp_path: Path) -> None:
    log = new_log(tmp_path, objectives=["accuracy:max"], keep=2)
    for number, accuracy in enumerate((0.5, 0.6, 0.7)):
        ask(log, number)
        tell(log, number, accuracy=accuracy)
    deliver(log, "trial-1", "best", 1, 0.65)
    deliver(log, "trial-2", "best", 2, 0.75)
    before = study_facts(log, SPACE)
    assert [model.role for model in before.models] == ["best", "best"]
    assert before.found is not None
    assert before.found.name == "trial-2"
    ask(log, 3)
    tell(log, 3, accuracy=0.8)
    after = study_facts(log, SPACE)
    assert [(model.name, model.role) for model in after.models] == [("trial-2", "best"), ("trial-1", "earlier")]
    assert after.found is None, "the best design now has not been delivered"


def test_a_study_that_goes_on_shows_where_to_and_how(tmp_path: Path) -> None:
    log = small_study(tmp_path, stop={"trials": 4, "failures": 3})
    log.append("started", WORKER, {"begins": True, "stop": {"trials": 60, "seconds": None}})
    log.append("note", WORKER, {"command": "formwright resume it --trials 60"})
    facts = study_facts(log, SPACE)
    assert facts.config["stop"] == {"trials": 60, "seconds": None, "failures": 3}
    assert facts.run.command == "formwright search --seed 0\nformwright resume it --trials 60"


def test_the_best_is_among_the_longest_trials_that_can_be_trained_to_the_end(tmp_path: Path) -> None:
    log = new_log(tmp_path, objectives=["accuracy:max"])
    for number, (steps, accuracy) in enumerate(((100, 0.9), (300, 0.6), (300, 0.7))):
        ask(log, number, steps=steps)
        tell(log, number, accuracy=accuracy)
    facts = study_facts(log, SPACE)
    assert facts.progress.by_number == ((1, 0.6), (2, 0.7))
    assert facts.best == 2
    log = new_log(tmp_path / "other", objectives=["accuracy:max"])
    for number, accuracy in enumerate((0.7, 0.6)):
        ask(log, number)
        tell(log, number, accuracy=accuracy)
    failed = {"name": "trial-0", "digest": SPACE.card(design_of(0)).digest, "reason": "the loss is nan"}
    log.append("note", WORKER, {"undelivered": failed})
    deliver(log, "trial-1", "best", 1, 0.65)
    facts = study_facts(log, SPACE)
    assert facts.best == 1
    assert facts.found == facts.models[0]
    assert facts.found.role == "best"


def test_a_study_of_a_compressed_model_has_a_teacher(tmp_path: Path) -> None:
    facts = compressed_facts(tmp_path)
    assert facts.compression is not None
    assert facts.teacher == facts.models[0]
    assert (facts.teacher.name, facts.teacher.steps) == ("teacher", 500)
    other = study_facts(small_study(tmp_path / "other"), SPACE)
    assert (other.compression, other.teacher) == (None, None)


CARD = SPACE.card(design_of(0))
FOUND = Observation({"accuracy": 0.5, "latency_ms": 7.0, "params": 1.0}, Spent(2.5, 300, 9))
LIMIT = Objective("latency_ms", "min", 5.0)
MAX, MIN = Objective("accuracy", "max"), Objective("accuracy", "min")


def event(kind: Kind, at: float, number: int | None = 0, worker: str = "first", **data: object) -> Event:
    return Event(round(10 * at) + 1, kind, number, worker, at, data)


def only(trial: Trial, *events: Event, limits: tuple[Objective, ...] = ()) -> TrialRow:
    (row,) = trial_rows(History((trial,)), events, limits, 32)
    return row


def test_rows_have_the_times_and_states_of_their_trials() -> None:
    trial = Trial(0, Request(CARD, Budget(300), 7), "finished", FOUND)
    row = only(trial, event("asked", 100.0), event("claimed", 101.0), event("told", 105.0))
    assert (row.number, row.state, row.parent, row.budget, row.steps) == (0, "finished", 7, 300, 300)
    assert (row.seconds, row.started, row.finished, row.elapsed, row.worker) == (2.5, 101.0, 105.0, 5.0, "first")
    assert row.costs == {"params": params(CARD), "macs": macs(CARD, 32)}
    assert row.digest == CARD.digest
    row = only(Trial(0, Request(CARD), "failed", None, "why"), event("claimed", 101.0), event("failed", 104.0))
    assert (row.seconds, row.reason, row.steps, row.feasible) == (3.0, "why", None, False)
    events = event("asked", 1.0), event("claimed", 1.0), event("claimed", 9.0, worker="second")
    row = only(Trial(0, Request(CARD)), *events)
    assert (row.state, row.worker, row.started) == ("pending", "second", 9.0)
    assert row.seconds is row.finished is row.elapsed is None


def test_a_trial_within_its_limits_has_metrics_that_win_over_costs() -> None:
    row = only(Trial(0, Request(CARD), "finished", FOUND))
    assert row.values["params"] == 1.0
    assert row.values["macs"] == macs(CARD, 32)
    trial = Trial(0, Request(CARD), "finished", FOUND)
    assert only(trial).feasible
    assert not only(trial, limits=(LIMIT,)).feasible
    # what an observation does not tell was checked before
    assert only(trial, limits=(Objective("flops", "min", 0.0),)).feasible


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


def test_only_what_is_finished_within_the_limits_is_progress(row: TrialRow) -> None:
    rows = made(row, [0.5, 0.9], [1, 2])
    rows[1] = replace(rows[1], feasible=False)
    assert progress(rows, MAX).by_number == ((0, 0.5),)
    pending = replace(row, state="pending", metrics={}, feasible=False, elapsed=None)
    assert progress([pending], MAX).by_number == progress([], MAX).by_seconds == ()
