import errno
import multiprocessing
import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.study.cases import (
    ELSEWHERE,
    SEARCHERS,
    Crash,
    Grouped,
    Stepping,
    a_dead_name,
    begin,
    kinds,
    new_log,
    outline,
    run,
    toy_study,
    whole,
    work_until_killed,
)

from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import Observation, Request
from formwright.core.rng import derive
from formwright.search import make_searcher
from formwright.study.replay import history_as_of, read_asked
from formwright.study.stop import Stop
from formwright.study.store import Event, Log, StoreError
from formwright.study.study import StudySetup
from formwright.study.worker import DiskFull, Heartbeat, LeaseLost, TrialInterrupted, Worker
from formwright.testing.toy_problem import large, small, tiny


def crash(_: Request) -> None:
    raise Crash


def test_a_trial_that_kills_its_workers_is_given_up(log: Log, tmp_path: Path) -> None:
    study = toy_study(log, tmp_path, stop=1, evaluator=Stepping(before=crash))
    begin(log)
    for _ in range(3):
        with pytest.raises(Crash):
            Worker(study, name=a_dead_name()).run()
    Worker(study).run()
    (trial,) = study.history().trials
    assert (trial.state, trial.reason) == ("failed", "the worker died in each of 3 attempts")


def test_a_new_run_gives_a_trial_new_attempts(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for _ in range(5):
        with pytest.raises(Crash):
            run(toy_study(log, tmp_path, stop=1, evaluator=Stepping(before=crash)), name=a_dead_name())
    study = toy_study(log, tmp_path, stop=1)
    run(study)
    assert study.history().trials[0].state == "finished"


def test_a_trial_that_workers_left_is_not_suspect_and_free_at_once(log: Log, tmp_path: Path) -> None:
    def leave(_: Request) -> None:
        raise TrialInterrupted

    begin(log)
    for _ in range(5):
        with pytest.raises(TrialInterrupted):
            Worker(toy_study(log, tmp_path, stop=1, evaluator=Stepping(before=leave)), name=ELSEWHERE).run()
    study = toy_study(log, tmp_path, stop=1)
    Worker(study).run()
    assert study.history().trials[0].state == "finished"
    assert [event.number for event in kinds(log, "asked")] == [0]


def failing(error: Exception) -> Stepping:
    def fail(_: Request) -> None:
        raise error

    return Stepping(before=fail)


@pytest.mark.parametrize(
    ("error", "reason"),
    [(EvaluationFailed("the loss is NaN"), "the loss is NaN"), (KeyError("weights"), "KeyError: 'weights'")],
)
def test_a_failed_evaluation_is_recorded_and_the_search_goes_on(
    error: Exception, reason: str, log: Log, tmp_path: Path
) -> None:
    study = toy_study(log, tmp_path, stop=3, evaluator=failing(error))
    assert run(study) == "3 trials"
    assert [(trial.state, trial.reason) for trial in study.history().trials] == [("failed", reason)] * 3
    assert all(("traceback" in event.data) == isinstance(error, KeyError) for event in kinds(log, "failed"))


def test_a_full_disk_is_no_failure_of_a_design(log: Log, tmp_path: Path) -> None:
    def fill(request: Request) -> None:
        if log.read()[-1].number == 1:
            try:
                raise OSError(errno.ENOSPC, "No space left on device")
            except OSError:
                raise IllegalInput("cannot write the weights: No space left on device") from None

    with pytest.raises(DiskFull, match=r"No space left on device\. Free some space, then resume the study"):
        run(toy_study(log, tmp_path, stop=3, evaluator=Stepping(before=fill)))
    assert kinds(log, "failed") == []
    study = toy_study(log, tmp_path, stop=3)
    run(study)
    (tmp_path / "other").mkdir()
    undisturbed = toy_study(new_log(tmp_path / "other"), tmp_path, stop=3)
    run(undisturbed)
    assert outline(study) == outline(undisturbed)


def test_scores_that_are_no_numbers_failures_and_refused_designs_count(tmp_path: Path) -> None:
    class NotFinite:
        def evaluate(self, request: Request, context: Any) -> Observation:
            return Observation({"accuracy": float("nan"), "params": 1.0})

    study = toy_study(new_log(tmp_path, "numbers"), tmp_path, stop=1, evaluator=NotFinite())
    run(study)
    assert "accuracy" in study.history().trials[0].reason
    stop = Stop(trials=50, failures=3)
    study = toy_study(new_log(tmp_path, "failures"), tmp_path, stop=stop, evaluator=failing(EvaluationFailed("no")))
    assert run(study) == "4 trials failed, more than the allowed 3"
    assert len(study.history().trials) == 4
    study = toy_study(new_log(tmp_path), tmp_path, stop=2, evaluator=failing(AssertionError("evaluated")))
    run(replace(study, gate=lambda card: "too slow"))
    assert [trial.reason for trial in study.history().trials] == ["too slow"] * 2


@pytest.mark.parametrize("stop", [Stop(trials=30, failures=0), Stop(patience=3, failures=0)])
def test_designs_beyond_a_measured_limit_are_no_failures_and_end_no_search_early(stop: Stop, tmp_path: Path) -> None:
    study = toy_study(new_log(tmp_path), tmp_path, stop=stop, space=large())
    refused = run(replace(study, gate=lambda card: "too slow"))
    assert "measured limit refused" in refused
    assert len(study.history().trials) == (stop.trials or 200)
    some = toy_study(new_log(tmp_path, "some"), tmp_path, stop=30, space=large())
    keeps = iter(range(99))
    assert run(replace(some, gate=lambda card: "too slow" if next(keeps) < 25 else None)) == "30 trials"
    assert len(some.history().finished) == 5


@pytest.mark.parametrize("searcher", SEARCHERS)
def test_a_space_that_is_used_up_ends_a_study(searcher: str, tmp_path: Path) -> None:
    study = toy_study(new_log(tmp_path), tmp_path, searcher, space=tiny(), stop=60)
    assert run(study) == "every design of space 'tiny' has been asked for."
    assert len(study.history().digests) == 12


def test_a_study_says_why_it_stopped_and_begins_like_a_longer_one(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    run(toy_study(log, tmp_path, stop=2))
    assert log.read()[-1].kind == "stopped"
    assert log.read()[-1].data == {"reason": "2 trials"}
    study = toy_study(log, tmp_path, stop=4)
    run(study)
    before = outline(study)
    assert run(toy_study(log, tmp_path, stop=4)) == "4 trials"
    assert outline(study) == before
    study = toy_study(log, tmp_path, stop=9)
    run(study)
    assert outline(study) == whole(tmp_path, "random", 9)


def test_a_study_stops_by_steps_by_patience_and_by_seconds_without_a_launcher(tmp_path: Path) -> None:
    by_steps = toy_study(new_log(tmp_path, "steps"), tmp_path, "halving", stop=Stop(steps=5))
    assert run(by_steps) == "5 training steps"
    # three designs of one step each, and the first promotion, to three steps
    assert [trial.request.budget.steps for trial in by_steps.history().trials] == [1, 1, 1, 3]
    by_patience = toy_study(new_log(tmp_path, "patience"), tmp_path, stop=Stop(patience=6), objectives=["accuracy:max"])
    assert run(by_patience) == "no better design in 6 trials"
    study = toy_study(new_log(tmp_path), tmp_path, stop=Stop(seconds=0.3), evaluator=Stepping(1, 0.02))
    assert Worker(study).run() == "0.3 seconds"


@pytest.fixture
def leased(log: Log) -> Log:
    """Give a log whose trial 0 is leased for a moment."""
    assert log.ask(0, "me", 0.4, {})
    return log


def wait_until_lost(heart: Heartbeat, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        heart.check()
        time.sleep(0.01)


def test_a_lease_lives_as_long_as_the_heart_beats(leased: Log) -> None:
    before = leased.leases()[0].expires
    with Heartbeat(leased, 0, "me", 0.4) as heart:
        time.sleep(0.8)
        heart.check()
        assert not leased.claim(0, "other", 60)
    assert leased.leases()[0].expires > before
    with Heartbeat(leased, 0, "me", 0.4):
        pass
    time.sleep(0.5)
    assert leased.claim(0, "other", 60)
    assert leased.leases()[0].worker == "other"


@pytest.mark.parametrize("done", [False, True])
def test_a_lease_that_another_has_or_that_is_done_is_lost(leased: Log, done: bool) -> None:
    with Heartbeat(leased, 0, "me", 0.2) as heart:
        heart.check()
        if done:
            assert leased.finish(0, "other", "failed", {"reason": "elsewhere"})
        else:
            assert leased.claim(0, "other", 60, dead=["me"])
        with pytest.raises(LeaseLost):
            wait_until_lost(heart)
    assert [lease.worker for lease in leased.leases().values()] == ([] if done else ["other"])


def test_a_database_that_is_away_for_a_moment_is_borne(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = new_log(tmp_path)
    log.ask(0, "me", 60, {})
    renewed, answers = threading.Event(), iter([StoreError("away"), StoreError("away")])

    def renew(*_: object) -> bool:
        for error in answers:
            raise error
        renewed.set()
        return True

    monkeypatch.setattr(log, "renew", renew)
    with Heartbeat(log, 0, "me", 0.04) as heart:
        assert renewed.wait(10)
        heart.check()


TRIALS = 18


class Sometimes:
    """Raise an error now and then, at moments that a seed decides."""

    def __init__(self, error: type[BaseException], seed: int, share: float = 0.15) -> None:
        self._error, self._rng, self._share = error, derive(seed, "moments"), share
        self.times = 0

    def __call__(self, *_: Any) -> None:
        if self._rng.random() < self._share:
            self.times += 1
            raise self._error


def go_on(
    log: Log,
    folder: Path,
    searcher: str,
    error: type[BaseException],
    trials: int = TRIALS,
    evaluator: type[Stepping] = Stepping,
) -> StudySetup:
    """Run a study to its end with a new worker after each interruption."""
    sometimes = Sometimes(error, seed=len(searcher))
    while True:
        # nothing is kept from one worker to the next but the log
        study = toy_study(log, folder, searcher, stop=trials, evaluator=evaluator(3))
        try:
            run(study, name=a_dead_name(), between_steps=sometimes)
        except (TrialInterrupted, Crash):
            continue
        assert sometimes.times > 3
        return study


@pytest.mark.parametrize("error", [TrialInterrupted, Crash])
@pytest.mark.parametrize("searcher", SEARCHERS)
def test_an_interrupted_study_repeats_the_one_that_was_not(
    searcher: str, error: type[BaseException], tmp_path: Path
) -> None:
    assert outline(go_on(new_log(tmp_path), tmp_path, searcher, error)) == whole(tmp_path, searcher, TRIALS)


@pytest.mark.parametrize("error", [TrialInterrupted, Crash])
@pytest.mark.parametrize("searcher", ["random", "nsga2"])
def test_an_interrupted_study_of_groups_repeats_the_one_that_was_not(
    searcher: str, error: type[BaseException], tmp_path: Path
) -> None:
    found = outline(go_on(new_log(tmp_path), tmp_path, searcher, error, 14, Grouped))
    assert found == whole(tmp_path, searcher, 14, Grouped())


def test_trials_that_are_evaluated_together_are_asked_for_before(tmp_path: Path) -> None:
    log, evaluator = new_log(tmp_path), Grouped()
    study = toy_study(log, tmp_path, "nsga2", stop=10, evaluator=evaluator)
    run(study)
    assert evaluator.sizes == [4, 4, 2]
    pending = [len(history_as_of(log.read(), one.data["seen"], small()).pending) for one in kinds(log, "asked")]
    assert pending == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    alone = toy_study(new_log(tmp_path, "alone"), tmp_path, "nsga2", stop=10, evaluator=Stepping())
    run(alone)
    first, own = outline(study)[:1], outline(alone)[:1]
    assert first == own  # and later ones are proposed with fewer trials known


def test_of_trials_that_are_evaluated_together_the_one_at_fault_fails_and_a_refused_one_is_left_out(
    tmp_path: Path,
) -> None:
    def fail(request: Request) -> None:
        if request.card.digest == digests[1]:
            raise EvaluationFailed("not this one")

    digests = [row[1] for row in whole(tmp_path, "random", 8)]  # which random search proposes, whatever it knows
    evaluator = Grouped(before=fail)
    study = toy_study(new_log(tmp_path), tmp_path, "random", stop=8, evaluator=evaluator)
    run(replace(study, gate=lambda card: "too slow" if card.digest == digests[6] else None))
    assert [trial.state for trial in study.history().trials] == [
        "failed" if number in (1, 6) else "finished" for number in range(8)
    ]
    assert evaluator.sizes == [4, 3]


def test_a_trial_that_may_have_killed_its_worker_is_evaluated_alone(log: Log, tmp_path: Path) -> None:
    begin(log)
    with pytest.raises(Crash):
        Worker(toy_study(log, tmp_path, stop=4, evaluator=Grouped(before=crash)), name=a_dead_name()).run()
    evaluator = Grouped()
    study = toy_study(log, tmp_path, stop=4, evaluator=evaluator)
    Worker(study).run()
    assert evaluator.sizes == []
    assert len(study.history().finished) == 4


def test_only_the_trial_of_a_group_that_kills_its_workers_is_given_up(log: Log, tmp_path: Path) -> None:
    def kill(request: Request) -> None:
        if request.card.digest == digests[2]:
            raise Crash

    digests = [row[1] for row in whole(tmp_path, "random", 4)]
    begin(log)
    study = toy_study(log, tmp_path, stop=4, evaluator=Grouped(before=kill))
    for _ in range(10):
        with suppress(Crash):
            Worker(study, name=a_dead_name()).run()
            break
    assert [trial.state for trial in study.history().trials] == ["finished", "finished", "failed", "finished"]


@pytest.mark.parametrize("asked", [2, 3, 6, 7])
def test_a_worker_that_dies_in_the_middle_of_a_group_is_replaced_and_nothing_changes(
    tmp_path: Path, asked: int
) -> None:
    log = new_log(tmp_path)

    def die() -> None:
        if len(kinds(log, "asked")) == asked and len(kinds(log, "told")) == asked // 4 * 4:
            raise Crash

    begin(log)
    study = toy_study(log, tmp_path, "nsga2", stop=14, evaluator=Grouped())
    with pytest.raises(Crash):
        Worker(study, name=a_dead_name(), between_steps=die).run()
    Worker(study).run()  # in the same run
    assert outline(study) == whole(tmp_path, "nsga2", 14, Grouped())


def test_a_trial_of_a_group_that_another_worker_has_by_now_does_not_end_the_work(tmp_path: Path) -> None:
    lost = iter([True])

    def lose(_: Request) -> None:
        if next(lost, False):
            raise LeaseLost

    study = toy_study(new_log(tmp_path), tmp_path, stop=6, evaluator=Grouped(before=lose))
    run(study)
    assert len(study.history().finished) == 6


def test_an_interrupted_study_repeats_itself_on_both_databases(log: Log, tmp_path: Path) -> None:
    assert outline(go_on(log, tmp_path, "nsga2", Crash, 15)) == whole(tmp_path, "nsga2", 15)


@pytest.mark.parametrize("searcher", SEARCHERS)
def test_the_log_replays(searcher: str, tmp_path: Path) -> None:
    log, space = new_log(tmp_path), small()
    study = go_on(log, tmp_path, searcher, TrialInterrupted)
    events = log.read()
    asked = [event for event in events if event.kind == "asked"]
    assert len(asked) == TRIALS
    for event in asked:
        assert event.number is not None
        method = make_searcher(searcher, space, study.objectives, trials=TRIALS, steps=27)
        before = history_as_of(events, event.data["seen"], space)
        request = method.ask(before, derive(study.seed, "ask", event.number))
        assert request == read_asked(event.data, space).request


@pytest.mark.timeout(180)
@pytest.mark.parametrize("searcher", ["regularized-evolution", "halving"])
@pytest.mark.long
def test_fifty_kills_change_nothing(searcher: str, tmp_path: Path) -> None:
    trials, kills = 100, 0
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "tests.study.cases"])
    log, rng = new_log(tmp_path), derive(0, "kills")
    seen: list[Event] = []
    arguments = (str(tmp_path / "one.db"), str(tmp_path), searcher, trials)
    while kills < 50:
        process = context.Process(target=work_until_killed, args=arguments)
        process.start()
        began = len(seen)
        while process.is_alive() and len(log.read()) == began:
            time.sleep(0.002)  # until it is at work
        time.sleep(rng.uniform(0, 0.04))
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert process.exitcode == -signal.SIGKILL, "the study was over too soon"
        kills += 1
        events = log.read()
        assert events[: len(seen)] == seen
        seen = events
    assert len([event for event in seen if event.kind == "told"]) < trials
    study = toy_study(log, tmp_path, searcher, stop=trials)
    run(study)
    assert outline(study) == whole(tmp_path, searcher, trials)
