"""The log of one study, on SQLite and on PostgreSQL."""

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formwright.core.errors import IllegalInput
from formwright.study.events import Kind
from formwright.study.store import Event, Log, Store

LONG = 3600.0
GONE = -1.0  # a lease that has expired when it is granted


def outline(log: Log) -> list[tuple[str, int | None, str]]:
    return [(event.kind, event.number, event.worker) for event in log.read()]


def test_an_event_is_read_as_it_was_written(log: Log) -> None:
    before = log.now()
    written = log.append("note", "w1", {"text": "größer\u0000", "value": 0.1 + 0.2}, number=7)
    assert log.read() == [written]
    assert written == Event(written.id, "note", 7, "w1", written.at, {"text": "größer\u0000", "value": 0.1 + 0.2})
    assert before <= written.at <= log.now()


def test_an_event_may_have_no_data_and_no_number(log: Log) -> None:
    log.append("started", "w1")
    assert [(event.number, event.data) for event in log.read()] == [(None, {})]


def test_reading_goes_on_where_it_stopped(log: Log) -> None:
    events = [log.append("note", "w1", {"k": k}) for k in range(5)]
    assert log.read(after=events[2].id) == events[3:]
    assert log.read(after=events[4].id) == []


def test_studies_do_not_see_each_other(store: Store, log: Log) -> None:
    store.create_study("two", {})
    other = store.study("two")
    assert log.ask(0, "w1", LONG, {"from": "one"})
    assert other.ask(0, "w1", LONG, {"from": "two"})
    assert other.finish(0, "w1", "told", {})
    assert [event.data for event in log.read() if event.kind == "asked"] == [{"from": "one"}]
    assert list(log.leases()) == [0]
    assert other.leases() == {}


def test_asking_writes_the_request_the_claim_and_the_lease(log: Log) -> None:
    assert log.ask(3, "w1", 60.0, {"card": "c"})
    asked, claimed = log.read()
    assert (asked.kind, asked.number, asked.data) == ("asked", 3, {"card": "c"})
    assert (claimed.kind, claimed.number, claimed.worker) == ("claimed", 3, "w1")
    lease = log.leases()[3]
    assert (lease.number, lease.worker, lease.attempts) == (3, "w1", 1)
    assert lease.expires == pytest.approx(log.now() + 60, abs=5)


def test_a_number_is_asked_for_once(log: Log) -> None:
    assert log.ask(0, "w1", GONE, {"first": True})
    before, lease = log.read(), log.leases()
    assert not log.ask(0, "w2", LONG, {"first": False})
    assert (log.read(), log.leases()) == (before, lease)


def test_a_trial_has_one_outcome(log: Log) -> None:
    log.ask(0, "w1", LONG, {})
    assert log.finish(0, "w1", "told", {"accuracy": 0.5})
    assert log.leases() == {}
    before = log.read()
    assert not log.finish(0, "w1", "told", {"accuracy": 0.5})
    assert not log.finish(0, "w2", "failed", {"reason": "late"})
    assert log.read() == before


def test_a_live_lease_cannot_be_taken(log: Log) -> None:
    log.ask(0, "w1", LONG, {})
    before = log.leases()
    assert not log.claim(0, "w2", LONG)
    assert not log.claim(0, "w2", LONG, dead=["w3"])
    assert log.leases() == before


def test_an_expired_lease_is_taken_once(log: Log) -> None:
    log.ask(0, "w1", GONE, {})
    assert log.claim(0, "w2", LONG)
    assert not log.claim(0, "w3", LONG)
    assert (log.leases()[0].worker, log.leases()[0].attempts) == ("w2", 2)
    assert outline(log) == [("asked", 0, "w1"), ("claimed", 0, "w1"), ("claimed", 0, "w2")]
    assert [event.data for event in log.read() if event.kind == "claimed"] == [{"attempt": 1}, {"attempt": 2}]


def test_a_lease_ends_by_itself(log: Log) -> None:
    log.ask(0, "w1", 0.2, {})
    assert not log.claim(0, "w2", LONG)
    time.sleep(0.25)
    assert log.claim(0, "w2", LONG)


def test_the_lease_of_a_dead_worker_is_taken(log: Log) -> None:
    log.ask(0, "w1", LONG, {})
    assert log.claim(0, "w2", LONG, dead={"w1"})
    assert log.leases()[0].worker == "w2"


def test_only_unfinished_trials_can_be_claimed(log: Log) -> None:
    log.ask(0, "w1", GONE, {})
    log.finish(0, "w1", "failed", {"reason": "diverged"})
    assert not log.claim(0, "w2", LONG)
    assert not log.claim(1, "w2", LONG), "trial 1 was never asked for"
    assert log.leases() == {}


def test_a_heartbeat_prolongs_the_lease(log: Log) -> None:
    log.ask(0, "w1", GONE, {})
    assert log.renew(0, "w1", LONG)
    assert log.leases()[0].expires == pytest.approx(log.now() + LONG, abs=5)
    assert not log.claim(0, "w2", LONG)


def test_a_heartbeat_notices_that_the_lease_is_lost(log: Log) -> None:
    log.ask(0, "w1", GONE, {})
    log.claim(0, "w2", 60.0)
    before = log.leases()
    assert not log.renew(0, "w1", LONG)
    assert log.leases() == before
    log.finish(0, "w2", "told", {})
    assert not log.renew(0, "w2", LONG)
    assert not log.renew(5, "w2", LONG)


def test_a_slow_worker_may_still_be_the_first_to_finish(log: Log) -> None:
    log.ask(0, "w1", GONE, {})
    log.claim(0, "w2", LONG)
    assert log.finish(0, "w1", "told", {"accuracy": 0.5})
    assert not log.finish(0, "w2", "told", {"accuracy": 0.5})
    assert log.leases() == {}


@pytest.mark.parametrize("kind", ["asked", "claimed", "told", "failed"])
def test_the_course_of_a_trial_cannot_be_appended(log: Log, kind: str) -> None:
    with pytest.raises(AssertionError, match="leases"):
        log.append(cast(Kind, kind), "w1", {}, number=0)
    assert log.read() == []


@pytest.mark.parametrize("value", [math.nan, math.inf, {1: 2}, [{None: 0}], {3}, object()])
def test_what_json_cannot_hold_is_refused(log: Log, value: object) -> None:
    with pytest.raises(IllegalInput, match="plain, finite JSON"):
        log.append("note", "w1", {"value": value})
    with pytest.raises(IllegalInput, match="plain, finite JSON"):
        log.ask(0, "w1", LONG, {"value": value})
    assert log.read() == []
    assert log.ask(0, "w1", LONG, {})
    with pytest.raises(IllegalInput, match="plain, finite JSON"):
        log.finish(0, "w1", "told", {"value": value})
    assert list(log.leases()) == [0]


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.dictionaries(st.text(), plain, max_size=4))
def test_data_survives_exactly(log: Log, data: dict[str, Any]) -> None:
    written = log.append("note", "w1", data)
    read = log.read(after=written.id - 1)[-1]
    assert repr(read.data) == repr(data), "as repr, because 0.0 == -0.0 and 1 == 1.0 == True"


def test_eight_threads_write_at_once(log: Log, open_store: Callable[[], Store]) -> None:
    def work(worker: int) -> int:
        mine = open_store().study("one") if worker % 2 else log
        won = 0
        for number in range(20):
            if mine.ask(number, f"w{worker}", LONG, {}):
                won += 1
                assert mine.renew(number, f"w{worker}", LONG)
                assert mine.finish(number, f"w{worker}", "told", {"by": worker})
        return won

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(8))) == 20
    assert sorted(event.number for event in log.read() if event.kind == "told") == list(range(20))
    assert len(log.read()) == 60


@pytest.mark.parametrize("statement", ["UPDATE events SET worker = 'x'", "DELETE FROM events"])
def test_the_database_itself_refuses_to_change_events(store: Store, log: Log, statement: str) -> None:
    log.append("note", "w1")
    before = log.read()
    with pytest.raises(Exception, match="events are append-only"):
        store._database.write(0, lambda connection, _again: connection.exec_driver_sql(statement))
    assert log.read() == before


@pytest.mark.postgres
def test_postgres_refuses_to_empty_the_log(postgres: Any) -> None:
    append_only = pytest.raises(Exception, match="events are append-only")
    with Store.open(postgres.new_url(), create=True) as store, append_only:
        store._database.write(0, lambda connection, _again: connection.exec_driver_sql("TRUNCATE events"))


def test_identifiers_become_visible_in_order(log: Log, open_store: Callable[[], Store]) -> None:
    """A reader that follows a log while others write to it sees every event: none appears behind its back."""
    writers = [open_store().study("one") for _ in range(3)]
    followed: list[Event] = []
    with ThreadPoolExecutor(3) as pool:
        done = [pool.submit(lambda w=w: [w.append("note", "w") for _ in range(40)]) for w in writers]
        while not all(future.done() for future in done):
            followed += log.read(after=followed[-1].id if followed else 0)
    followed += log.read(after=followed[-1].id)
    assert len(followed) == 120
    assert followed == log.read()
