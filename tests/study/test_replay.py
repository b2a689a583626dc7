import json
from pathlib import Path

from tests.study.cases import Stepping, begin, kinds, new_log, run, toy_study

from formwright.core.errors import EvaluationFailed
from formwright.core.records import Budget, History, Request
from formwright.core.rng import derive
from formwright.study.replay import Replay, asked_data, history_as_of, read_asked
from formwright.study.stop import Ledger
from formwright.study.store import Log
from formwright.testing.toy_problem import small

SPACE = small()


def request(parent: int | None = None) -> Request:
    design = SPACE.sample(derive(3))
    return Request(SPACE.card(design), Budget(9), parent, design)


def fed(log: Log) -> Replay:
    replay = Replay(SPACE)
    replay.feed(log.read())
    return replay


def test_a_request_survives_the_log_with_or_without_a_design() -> None:
    found = read_asked(json.loads(json.dumps(asked_data(request(2), SPACE, 17))), SPACE)
    assert (found.request, found.seen) == (request(2), 17)
    own = Request(request().card)
    assert read_asked(json.loads(json.dumps(asked_data(own, SPACE, 0))), SPACE).request == own


def test_a_history_is_what_happened(tmp_path: Path) -> None:
    log, numbers = new_log(tmp_path), iter(range(9))

    def fail_second(_: Request) -> None:
        if next(numbers) == 1:
            raise EvaluationFailed("no luck")

    study = toy_study(log, tmp_path, stop=3, evaluator=Stepping(before=fail_second))
    run(study)
    log.ask(3, "me", 60, asked_data(request(), SPACE, 0))
    trials = study.history().trials
    assert [trial.state for trial in trials] == ["finished", "failed", "finished", "pending"]
    assert trials[1].reason == "no luck"
    assert trials[3].request == request()


def test_the_past_can_be_fed_in_pieces_and_seen_again(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    study = toy_study(log, tmp_path, "nsga2", stop=6)
    run(study)
    whole, piecewise = fed(log), Replay(SPACE)
    for event in log.read():
        before = piecewise.history
        piecewise.feed([event])
        assert len(piecewise.history.trials) >= len(before.trials)
    assert piecewise.history == whole.history
    assert (piecewise.seen, piecewise.attempts, piecewise.asked) == (whole.seen, whole.attempts, whole.asked)
    assert whole.seen == log.read()[-1].id
    events = log.read()
    assert history_as_of(events, 0, SPACE) == History()
    assert history_as_of(events, events[-1].id, SPACE) == study.history()
    for told in kinds(log, "told"):
        assert told.number is not None
        before = history_as_of(events, told.id - 1, SPACE)
        assert [trial.number for trial in before.pending] == [told.number]
        assert len(before.finished) == told.number


def test_failures_count_in_their_run_and_cost_time(tmp_path: Path) -> None:
    log = new_log(tmp_path)

    def ledger() -> Ledger:
        return fed(log).ledger(0.0)

    def fail(_: Request) -> None:
        raise EvaluationFailed("no luck")

    run(toy_study(log, tmp_path, stop=2, evaluator=Stepping(before=fail)))
    assert (ledger().failed, ledger().failed_lately) == (2, 2)
    assert ledger().spent.seconds > 0.0
    begin(log)
    assert (ledger().failed, ledger().failed_lately) == (2, 0)


def test_attempts_count_deaths_of_one_run(tmp_path: Path) -> None:
    log = new_log(tmp_path)

    def attempts() -> int:
        return fed(log).attempts.get(0, 0)

    begin(log)
    log.ask(0, "one", 60, asked_data(request(), SPACE, 0))
    assert attempts() == 1
    assert log.claim(0, "two", 60, dead=["one"])
    assert attempts() == 2
    log.append("note", "two", {"left": True}, 0)  # that one did not die
    assert attempts() == 1
    log.append("note", "two", {"weather": "fine"}, 0)
    log.append("started", "three", {})  # a worker that joins
    assert attempts() == 1
    begin(log)
    assert attempts() == 0
