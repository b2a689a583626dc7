from typing import Any

import pytest
from tests.study.cases import finished, history

from formwright.core.errors import IllegalInput
from formwright.core.records import History, Objective, Spent, Trial
from formwright.study.events import Event, Kind
from formwright.study.stop import Clock, Ledger, Stop, since_progress

ACCURACY = [Objective.parse("accuracy:max")]
BOTH = [*ACCURACY, Objective.parse("params:min")]
LIMITED = [*ACCURACY, Objective.parse("params<=10")]


def scored(*accuracies: float) -> History:
    return history(*({"accuracy": value} for value in accuracies))


def pairs(*values: tuple[float, float]) -> History:
    return history(*({"accuracy": accuracy, "params": params} for accuracy, params in values))


@pytest.mark.parametrize(
    ("values", "since"),
    [((), 0), ((1.0,), 0), ((1.0, 2.0, 3.0), 0), ((3.0, 1.0, 2.0), 2), ((1.0, 3.0, 3.0), 1), ((2.0, 2.0, 2.0), 2)],
)
def test_progress_with_one_goal(values: tuple[float, ...], since: int) -> None:
    assert since_progress(scored(*values), ACCURACY) == since


@pytest.mark.parametrize(
    ("values", "since"), [((0.5, 0.75, 0.8, 0.85), 2), ((0.5, 0.75, 0.8, 0.95), 0), ((0.5, 0.6, 0.6), 2)]
)
def test_what_is_hardly_better_is_no_progress(values: tuple[float, ...], since: int) -> None:
    assert since_progress(scored(*values), ACCURACY, 0.125) == since
    assert since_progress(scored(*values), ACCURACY) < max(since, 1)


@pytest.mark.parametrize(
    ("values", "since"),
    [
        (((0.5, 10), (0.4, 5)), 0),  # worse in one goal, better in the other: the front has grown
        (((0.5, 10), (0.4, 5), (0.4, 6)), 1),
        (((0.5, 10), (0.5, 10)), 1),
        (((0.5, 10), (0.4, 12), (0.6, 20)), 0),
    ],
)
def test_progress_with_several_goals(values: tuple[tuple[float, float], ...], since: int) -> None:
    assert since_progress(pairs(*values), BOTH) == since


@pytest.mark.parametrize(
    ("values", "since"),
    [
        (((0.9, 20), (0.1, 10)), 0),  # the first within the limit is progress, however bad
        (((0.1, 10), (0.9, 20)), 1),  # and nothing beyond the limit is
        (((0.9, 30), (0.1, 20)), 0),  # nearer to the limit
        (((0.1, 20), (0.9, 20)), 1),
    ],
)
def test_progress_with_limits(values: tuple[tuple[float, float], ...], since: int) -> None:
    assert since_progress(pairs(*values), LIMITED) == since
    assert since_progress(pairs(*values), LIMITED, tolerance=5.0) == since  # it is for goals: a limit is kept or not


def test_whatever_comes_first_ends_a_study() -> None:
    past = scored(3.0, 1.0, 2.0)

    def reason(ledger: dict[str, Any], **limits: Any) -> str | None:
        told = Ledger(**{"finished": 3, "failed": 0, "pending": 0, "spent": Spent(), "elapsed": 0.0, **ledger})
        return Stop(**limits).reason(past, told, ACCURACY)

    assert reason({}, trials=3) == "3 trials"
    assert reason({}, trials=4) is None
    assert reason({"elapsed": 2.5}, seconds=2.5, trials=9) == "2.5 seconds"
    assert reason({"elapsed": 2.4}, seconds=2.5) is None
    assert reason({"spent": Spent(steps=50)}, steps=50) == "50 training steps"
    assert reason({"spent": Spent(steps=49)}, steps=50) is None
    assert reason({}, patience=2) == "no better design in 2 trials"
    assert reason({}, patience=3) is None
    assert reason({"failed_lately": 1}, trials=9, failures=0) == "1 trials failed, more than the allowed 0"
    assert reason({"failed_lately": 1}, trials=9, failures=1) is None
    assert reason({"failed": 9}, trials=9, failures=1) is None  # those of earlier runs are forgiven
    assert (
        reason({"failed": 3, "refused": 3}, trials=3, failures=0) == "3 trials; a measured limit refused every design"
    )
    assert reason({"refused": 2}, trials=3) == "3 trials"
    assert reason({"refused": 500}, patience=9) == "a measured limit refused the last 500 designs"
    assert reason({"refused": 500}, patience=9, trials=1_000) is None


def test_every_limit_that_is_reached_is_named_by_what_counts_as_progress() -> None:
    slow, ledger = scored(0.5, 0.501, 0.502), Ledger(3, 0, 0, Spent(), 0.0)
    assert Stop(patience=2).reason(slow, ledger, ACCURACY) is None
    assert Stop(patience=2, tolerance=0.01).reason(slow, ledger, ACCURACY) == "no better design in 2 trials"
    short = [finished(number, {"accuracy": 0.9}, 3) for number in range(3)]
    assert since_progress(History(tuple(short)), ACCURACY) == 2
    longer = [finished(3 + number, {"accuracy": value}, 9) for number, value in enumerate((0.5, 0.6, 0.55))]
    assert since_progress(History((*short, *longer)), ACCURACY) == 1
    past = History((Trial(0, finished(0, {}).request),))
    assert Stop(trials=1).reason(past, Ledger(0, 0, 1, Spent(), 0.0), ACCURACY) == "1 trial"
    past, told = scored(3.0, 1.0, 2.0), Ledger(3, 0, 0, Spent(steps=50), 2.5)
    assert Stop(3, 2.5, 50, 2).reached(past, told, ACCURACY) == ("trials", "seconds", "steps", "patience")
    assert Stop(4, 2.5, 51, 2).reached(past, told, ACCURACY) == ("seconds", "patience")
    assert Stop(4, 2.6, 51, 3).reached(past, told, ACCURACY) == ()
    assert since_progress(scored(3.0, 1.0, 2.0), [Objective.parse("accuracy:min")]) == 1


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({}, "say when to stop"),
        ({"failures": 3}, "say when to stop"),
        ({"trials": 0}, "trials must be at least 1"),
        ({"steps": -1}, "steps"),
        ({"patience": 0}, "patience must be at least 1"),
        ({"seconds": 0}, "seconds must be above 0"),
        ({"seconds": float("nan")}, "seconds"),
        ({"trials": 2.5}, "trials"),
        ({"trials": 2, "failures": -1}, "failures"),
        ({"patience": 2, "tolerance": -0.1}, "tolerance must be at least 0"),
        ({"patience": 2, "tolerance": float("nan")}, "tolerance"),
    ],
)
def test_a_search_without_a_sensible_end_is_refused(limits: dict[str, Any], told: str) -> None:
    with pytest.raises(IllegalInput, match=told):
        Stop(**limits)


def event(at: float, kind: Kind = "note", **data: Any) -> Event:
    return Event(int(at), kind, None, "me", at, data)


def begins(at: float) -> Event:
    return event(at, "started", begins=True)


def clock(*events: Event) -> Clock:
    found = Clock()
    found.feed(events)
    return found


def asked(at: float) -> Event:
    return event(at, "asked")


def test_the_clock_begins_with_the_first_trial_of_a_run_and_leaves_out_pauses() -> None:
    assert clock().elapsed(100.0) == 0.0
    assert clock(begins(10.0)).elapsed(15.0) == 0.0  # processes start
    assert clock(begins(8.0), event(9.0, "started"), asked(10.0)).elapsed(15.0) == 5.0
    assert clock(begins(8.0), event(10.0, "claimed"), asked(12.0)).elapsed(15.0) == 5.0
    assert clock(begins(9.0), asked(10.0), event(11.0, "started"), event(12.0)).elapsed(13.0) == 3.0
    assert clock(asked(10.0), event(12.0, "told")).elapsed(13.0) == 3.0
    killed = clock(begins(9.0), asked(10.0), event(14.0), begins(90.0), asked(100.0), event(101.0), begins(500.0))
    assert killed.elapsed(502.0) == 4.0 + 1.0
    killed.feed([asked(503.0)])
    assert killed.elapsed(505.0) == 4.0 + 1.0 + 2.0
    over = clock(begins(9.0), asked(10.0), event(14.0, "stopped"), event(14.5, "stopped"), event(90.0))
    assert over.elapsed(100.0) == 4.0
    over.feed([event(200.0, "started"), event(203.0, "stopped")])  # a worker that came late, and found nothing to do
    assert over.elapsed(300.0) == 4.0
    over.feed([event(400.0, "claimed"), event(401.0, "told")])
    assert over.elapsed(402.0) == 4.0 + 2.0
    events = [begins(9.0), asked(10.0), event(14.0), begins(90.0), asked(100.0), event(101.0)]
    piecewise = Clock()
    for each in events:
        piecewise.feed([each])
    assert piecewise == clock(*events)
