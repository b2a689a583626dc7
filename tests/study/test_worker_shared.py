import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.study.cases import ELSEWHERE, Stepping, a_dead_name, begin, kinds, new_log, outline, run, toy_study, whole

from formwright.core.records import Observation, Request
from formwright.core.rng import derive
from formwright.study import worker as worker_module
from formwright.study.identity import own_name
from formwright.study.replay import asked_data, history_as_of, read_asked
from formwright.study.store import Log, Store
from formwright.study.study import StudySetup
from formwright.study.worker import Worker
from formwright.testing.toy_problem import Toy, small


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "_WAIT", 0.01)


def together(studies: list[StudySetup]) -> list[str]:
    """Let a worker for each study work at the same time."""
    with ThreadPoolExecutor(len(studies)) as pool:
        workers = [Worker(study, name=f"another-machine/{number}/1") for number, study in enumerate(studies)]
        return list(pool.map(Worker.run, workers))


def test_several_workers_share_a_study(log: Log, tmp_path: Path) -> None:
    evaluated: list[str] = []
    evaluator = Stepping(2, 0.003, before=lambda request: evaluated.append(request.card.digest))
    begin(log)
    reasons = together([toy_study(log, tmp_path, "nsga2", stop=24, evaluator=evaluator) for _ in range(3)])
    assert reasons == ["24 trials"] * 3
    trials = toy_study(log, tmp_path).history().trials
    assert [trial.number for trial in trials] == list(range(24))
    assert {trial.state for trial in trials} == {"finished"}
    assert len(evaluated) == len(set(evaluated)) == 24
    assert len({event.worker for event in kinds(log, "told")}) == 3
    assert log.leases() == {}


def test_several_workers_leave_a_log_that_replays(tmp_path: Path) -> None:
    log, space = new_log(tmp_path), small()
    together([toy_study(log, tmp_path, "regularized-evolution", evaluator=Stepping(2, 0.002)) for _ in range(3)])
    study, events = toy_study(log, tmp_path, "regularized-evolution"), log.read()
    for event in kinds(log, "asked"):
        assert event.number is not None
        before = history_as_of(events, event.data["seen"], space)
        again = study.searcher.ask(before, derive(study.seed, "ask", event.number))
        assert again == read_asked(event.data, space).request


def ask_as(log: Log, study: StudySetup, name: str, seconds: float) -> None:
    """Ask for trial 0 as another worker, which then says nothing more."""
    request = study.searcher.ask(study.history(), derive(study.seed, "ask", 0))
    assert log.ask(0, name, seconds, asked_data(request, study.space, 0))


def test_a_trial_whose_lease_expired_is_taken_over(log: Log, tmp_path: Path) -> None:
    study = toy_study(log, tmp_path, stop=2)
    ask_as(log, study, ELSEWHERE, 0.2)
    run(study, name="here")
    assert [(event.number, event.worker) for event in kinds(log, "told")] == [(1, "here"), (0, "here")]
    assert outline(study) == whole(tmp_path, "random", 2)


def test_a_trial_that_is_taken_over_sees_what_its_first_worker_saw(tmp_path: Path) -> None:
    """Evaluators may inherit weights from the history: the result must not depend on who evaluates, and when."""
    seen: dict[str, int] = {}

    class Noting:
        def evaluate(self, request: Request, context: Any) -> Observation:
            seen[request.card.digest] = len(context.history.finished)
            return Toy().evaluate(request)

    log = new_log(tmp_path)
    study = toy_study(log, tmp_path, stop=3, evaluator=Noting())
    ask_as(log, study, ELSEWHERE, 1000)

    def expire() -> None:
        if len(study.history().finished) == 2:
            log.renew(0, ELSEWHERE, 0.0)

    run(study, between_steps=expire)
    assert [event.number for event in kinds(log, "told")] == [1, 2, 0]
    assert [seen[trial.request.card.digest] for trial in study.history().trials] == [0, 0, 1]


def test_a_trial_of_a_dead_worker_is_taken_over_first(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    study = toy_study(log, tmp_path, stop=2)
    ask_as(log, study, a_dead_name(), 1000)
    run(study)
    assert [event.number for event in kinds(log, "told")] == [0, 1]


def test_a_trial_of_a_live_worker_is_waited_for(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    study = toy_study(log, tmp_path, stop=1)
    ask_as(log, study, ELSEWHERE, 1000)
    looks: list[int] = []

    def look() -> None:
        looks.append(0)
        if len(looks) == 5:
            log.finish(
                0, ELSEWHERE, "told", {"observation": Toy().evaluate(study.history().trials[0].request).to_json()}
            )

    assert run(study, between_steps=look) == "1 trial"
    assert [event.worker for event in kinds(log, "told")] == [ELSEWHERE]
    assert len(looks) == 5


def test_a_worker_that_lost_its_lease_records_nothing(log: Log, tmp_path: Path) -> None:
    left: list[str] = []

    def steal(request: Request) -> None:
        if not left:
            left.append(request.card.digest)
            assert log.claim(0, ELSEWHERE, 60, dead=["slow"])

    evaluator = Stepping(10_000, 0.001, before=steal)
    study = toy_study(log, tmp_path, stop=1, evaluator=evaluator, lease_seconds=0.2)

    def finish_as_thief() -> None:
        if left and log.leases() and not kinds(log, "told"):
            looks.append(1)
        if len(looks) == 3000:
            raise AssertionError("the loss went unnoticed")

    looks: list[int] = []
    slow = Worker(study, name="slow", between_steps=finish_as_thief)
    with ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(slow.run)
        while not left:
            time.sleep(0.01)
        time.sleep(0.5)
        assert log.finish(0, ELSEWHERE, "failed", {"reason": "the thief's"})
        assert outcome.result() == "1 trial"
    assert [(event.kind, event.worker) for event in kinds(log, "told", "failed")] == [("failed", ELSEWHERE)]


def test_what_an_evaluation_without_steps_finds_after_the_lease_is_lost_is_not_recorded(tmp_path: Path) -> None:
    log = new_log(tmp_path)

    class Sleeper:
        def evaluate(self, request: Request, context: Any) -> Observation:
            assert log.claim(0, ELSEWHERE, 60, dead=[own_name()])
            time.sleep(0.3)
            return Observation({"accuracy": 1.0, "params": 1.0})

    study = toy_study(log, tmp_path, stop=1, evaluator=Sleeper(), lease_seconds=0.2)
    looks: list[int] = []

    def look() -> None:
        looks.append(1)
        if len(looks) == 3:
            log.finish(0, ELSEWHERE, "failed", {"reason": "the thief's"})

    Worker(study, between_steps=look).run()
    assert [event.worker for event in kinds(log, "told", "failed")] == [ELSEWHERE]


def test_a_store_per_worker_serves_as_well(tmp_path: Path) -> None:
    new_log(tmp_path)
    stores = [Store.open(tmp_path / "one.db") for _ in range(3)]
    together([toy_study(store.study("one"), tmp_path, evaluator=Stepping(1, 0.002)) for store in stores])
    assert {trial.state for trial in toy_study(stores[0].study("one"), tmp_path).history().trials} == {"finished"}
    for store in stores:
        store.close()
