from typing import Any

from formwright.study.events import Event, Kind
from formwright.study.ledger import Clock


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


def test_the_clock_begins_with_the_first_trial_of_a_run() -> None:
    assert clock().elapsed(100.0) == 0.0
    assert clock(begins(10.0)).elapsed(15.0) == 0.0  # processes start
    assert clock(begins(8.0), event(9.0, "started"), asked(10.0)).elapsed(15.0) == 5.0
    assert clock(begins(8.0), event(10.0, "claimed"), asked(12.0)).elapsed(15.0) == 5.0
    assert clock(begins(9.0), asked(10.0), event(11.0, "started"), event(12.0)).elapsed(13.0) == 3.0
    assert clock(asked(10.0), event(12.0, "told")).elapsed(13.0) == 3.0


def test_the_clock_leaves_out_pauses_and_what_follows_the_end() -> None:
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


def test_the_clock_may_be_fed_in_pieces() -> None:
    events = [begins(9.0), asked(10.0), event(14.0), begins(90.0), asked(100.0), event(101.0)]
    piecewise = Clock()
    for each in events:
        piecewise.feed([each])
    assert piecewise == clock(*events)
