from dataclasses import replace
from typing import Any

from tests.study.cases import finished

from formwright.core.records import History, Observation, Spent, Trial
from formwright.study.events import Event, Kind
from formwright.study.ledger import Clock, Ledger, ledger_of


def event(at: float, kind: Kind = "note", **data: Any) -> Event:
    return Event(int(at), kind, None, "me", at, data)


def begins(at: float) -> Event:
    return event(at, "started", begins=True)


def clock(*events: Event) -> Clock:
    found = Clock()
    found.feed(events)
    return found


def test_a_ledger_adds_up() -> None:
    trials = [
        replace(finished(number, {}), observation=Observation({}, Spent(1.5, 10 * number, 7))) for number in range(3)
    ]
    failed = Trial(3, trials[0].request, "failed", None, "no memory")
    pending = Trial(4, trials[0].request)
    ledger = ledger_of(History((*trials, failed, pending)), 12.0)
    assert ledger == Ledger(3, 1, 1, Spent(4.5, 30, 21), 12.0)


def test_an_empty_history_costs_nothing() -> None:
    assert ledger_of(History()) == Ledger(0, 0, 0, Spent(), 0.0)


def test_the_clock_runs_from_the_beginning_of_a_run() -> None:
    assert clock().elapsed(100.0) == 0.0
    assert clock(begins(10.0)).elapsed(15.0) == 5.0
    assert clock(begins(10.0), event(12.0)).elapsed(15.0) == 5.0


def test_the_clock_leaves_out_pauses() -> None:
    found = clock(begins(10.0), event(14.0), begins(100.0), event(101.0), begins(500.0))
    assert found.elapsed(502.0) == 4.0 + 1.0 + 2.0


def test_workers_that_join_begin_nothing() -> None:
    assert clock(begins(10.0), event(11.0, "started"), event(12.0)).elapsed(13.0) == 3.0


def test_without_a_launcher_the_first_event_begins() -> None:
    assert clock(event(10.0, "asked"), event(12.0, "told")).elapsed(13.0) == 3.0


def test_the_clock_may_be_fed_in_pieces() -> None:
    events = [begins(10.0), event(14.0), begins(100.0), event(101.0)]
    piecewise = Clock()
    for each in events:
        piecewise.feed([each])
    assert piecewise == clock(*events)
