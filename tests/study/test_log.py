"""The log of one study, on SQLite and on PostgreSQL."""

import math
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from formwright.core.errors import IllegalInput
from formwright.study.events import Event, Kind, from_text, to_text
from formwright.study.store import Log, Store

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
    log.append("started", "w1")
    assert [(event.number, event.data) for event in log.read(after=written.id)] == [(None, {})]
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


def test_asking_writes_the_request_the_claim_and_the_lease_once(log: Log) -> None:
    assert log.ask(3, "w1", 60.0, {"card": "c"})
    asked, claimed = log.read()
    assert (asked.kind, asked.number, asked.data) == ("asked", 3, {"card": "c"})
    assert (claimed.kind, claimed.number, claimed.worker) == ("claimed", 3, "w1")
    lease = log.leases()[3]
    assert (lease.number, lease.worker, lease.attempts) == (3, "w1", 1)
    assert lease.expires == pytest.approx(log.now() + 60, abs=5)
    assert log.ask(0, "w1", GONE, {"first": True})
    before, lease = log.read(), log.leases()
    assert not log.ask(0, "w2", LONG, {"first": False})
    assert (log.read(), log.leases()) == (before, lease)


def test_a_trial_has_one_outcome_and_is_claimed_only_before_it(log: Log) -> None:
    log.ask(0, "w1", LONG, {})
    assert log.finish(0, "w1", "told", {"accuracy": 0.5})
    assert log.leases() == {}
    before = log.read()
    assert not log.finish(0, "w1", "told", {"accuracy": 0.5})
    assert not log.finish(0, "w2", "failed", {"reason": "late"})
    assert log.read() == before
    log.ask(2, "w1", GONE, {})
    log.finish(2, "w1", "failed", {"reason": "diverged"})
    assert not log.claim(2, "w2", LONG)
    assert not log.claim(1, "w2", LONG), "trial 1 was never asked for"
    assert log.leases() == {}


def test_a_live_lease_is_taken_only_of_a_dead_worker(log: Log) -> None:
    log.ask(0, "w1", LONG, {})
    before = log.leases()
    assert not log.claim(0, "w2", LONG)
    assert not log.claim(0, "w2", LONG, dead=["w3"])
    assert log.leases() == before
    assert log.claim(0, "w2", LONG, dead={"w1"})
    assert log.leases()[0].worker == "w2"


def test_an_expired_lease_is_taken_once_but_the_first_to_finish_counts(log: Log) -> None:
    log.ask(0, "w1", GONE, {})
    assert log.claim(0, "w2", LONG)
    assert not log.claim(0, "w3", LONG)
    assert (log.leases()[0].worker, log.leases()[0].attempts) == ("w2", 2)
    assert outline(log) == [("asked", 0, "w1"), ("claimed", 0, "w1"), ("claimed", 0, "w2")]
    assert [event.data for event in log.read() if event.kind == "claimed"] == [{"attempt": 1}, {"attempt": 2}]
    assert log.finish(0, "w1", "told", {"accuracy": 0.5})
    assert not log.finish(0, "w2", "told", {"accuracy": 0.5})
    assert log.leases() == {}


def test_a_lease_ends_by_itself(log: Log) -> None:
    log.ask(0, "w1", 0.2, {})
    assert not log.claim(0, "w2", LONG)
    time.sleep(0.25)
    assert log.claim(0, "w2", LONG)


def test_a_heartbeat_prolongs_the_lease_or_notices_that_it_is_lost(log: Log) -> None:
    log.ask(0, "w1", GONE, {})
    assert log.renew(0, "w1", LONG)
    assert log.leases()[0].expires == pytest.approx(log.now() + LONG, abs=5)
    assert not log.claim(0, "w2", LONG)
    log.ask(1, "w1", GONE, {})
    log.claim(1, "w2", 60.0)
    before = log.leases()
    assert not log.renew(1, "w1", LONG)
    assert log.leases() == before
    log.finish(1, "w2", "told", {})
    assert not log.renew(1, "w2", LONG)
    assert not log.renew(5, "w2", LONG)


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


_TRIGGERS = ("DROP TRIGGER events_no_update", "DROP TRIGGER events_no_delete")


def changed(store: Store, statement: str) -> None:
    """Do to the events what triggers refuse."""

    def action(connection: Connection, _again: bool) -> None:
        if connection.dialect.name == "sqlite":
            for one in _TRIGGERS:
                connection.execute(text(one))
        else:
            connection.execute(text("ALTER TABLE events DISABLE TRIGGER ALL"))
        assert connection.execute(text(statement)).rowcount

    store._database.write(0, action)


@pytest.fixture
def filled(log: Log) -> Log:
    log.append("started", "me", {"begins": True})
    for number in range(3):
        log.ask(number, "me", 60.0, {"card": number})
        log.finish(number, "me", "told", {"observation": {"accuracy": 0.5}})
    return log


@pytest.mark.parametrize(
    ("statement", "event"),
    [
        ("UPDATE events SET data = replace(data, '0.5', '0.9') WHERE id = 4", "event 4 (told, trial 0)"),
        ("UPDATE events SET at = at + 1 WHERE id = 2", "event 2 (asked, trial 0)"),
        ("UPDATE events SET number = 7 WHERE id = 4", "event 4 (told, trial 7)"),
        ("UPDATE events SET worker = 'you' WHERE id = 3", "event 3 (claimed, trial 0)"),
        ("UPDATE events SET kind = 'failed' WHERE id = 4", "event 4 (failed, trial 0)"),
        ("UPDATE events SET slot = 'done:9' WHERE id = 4", "event 4 (told, trial 0)"),
        ("UPDATE events SET hash = NULL WHERE id = 6", "event 6"),
        ("UPDATE events SET slot = NULL WHERE id = 4", "event 4 (told, trial 0)"),
        ("DELETE FROM events WHERE id = 5", "event 6"),
        ("DELETE FROM events WHERE id = 1", "event 2"),
        ("UPDATE studies SET config = replace(config, '1', '2')", "event 1 "),
    ],
)
def test_a_change_is_noticed(store: Store, filled: Log, statement: str, event: str) -> None:
    changed(store, statement)
    with pytest.raises(IllegalInput) as found:
        store.study("one").read()
    assert event in str(found.value)
    assert store.place in str(found.value)


def test_writers_side_by_side_make_one_chain_and_reading_on_checks_what_is_new(
    open_store: Callable[[], Store], filled: Log, store: Store
) -> None:
    logs = [open_store().study("one") for _ in range(3)]
    for turn in range(12):
        logs[turn % 3].append("note", f"worker {turn % 3}", {"turn": turn})
    assert [event.data["turn"] for event in filled.read() if event.kind == "note"] == list(range(12))
    events = filled.read()
    changed(store, "UPDATE events SET data = replace(data, '0.5', '0.9') WHERE id = 10")
    assert filled.read(events[-1].id) == []
    with pytest.raises(IllegalInput, match="event 10"):
        filled.read(events[5].id)


def test_studies_of_one_database_have_chains_of_their_own(store: Store, filled: Log) -> None:
    store.create_study("two", {"seed": 2})
    other = store.study("two")
    for turn in range(3):
        other.append("note", "me", {"turn": turn})
        filled.append("note", "me", {"turn": turn})
    assert [event.data["turn"] for event in other.read(filled.read()[3].id)] == [0, 1, 2]
    changed(store, "UPDATE events SET study_id = 1 WHERE study_id = 2")
    with pytest.raises(IllegalInput):
        filled.read()


def forged(store: Store, **columns: Any) -> None:
    """Add an event whose hash is right, as someone who means harm would."""
    log = store.study("one")

    def action(connection: Connection, _again: bool) -> None:
        values = {"kind": "note", "number": None, "worker": "me", "text": "{}", "slot": "x"} | columns
        log._insert(connection, **values)

    store._database.write(0, action)


DEEP = "[" * 200_000 + "]" * 200_000


@pytest.mark.parametrize("data", ["{", "[1]", "3", DEEP], ids=["cut", "list", "number", "deep"])
def test_data_that_is_no_object_is_an_error_that_says_where(store: Store, log: Log, data: str) -> None:
    forged(store, text=data)
    with pytest.raises(IllegalInput, match=r"event 1 \(note\) of 'one'"):
        log.read()


@pytest.mark.parametrize("config", ["{", "null", DEEP], ids=["cut", "null", "deep"])
def test_a_damaged_configuration_is_an_error(store: Store, log: Log, config: str) -> None:
    change = text("UPDATE studies SET config = :config")
    store._database.write(0, lambda connection, _: connection.execute(change, {"config": config}))
    with pytest.raises(IllegalInput, match="configuration of 'one'"):
        store.study("one")


def test_bytes_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    with Store.open(tmp_path, create=True) as store:
        store.create_study("one", {})
        store.study("one").append("note", "me")
    with sqlite3.connect(tmp_path / "study.db") as connection:
        connection.execute("DROP TRIGGER events_no_update")
        connection.execute("UPDATE events SET data = CAST(x'7bff7d' AS TEXT)")
    connection.close()
    with Store.open(tmp_path) as store, pytest.raises(IllegalInput, match="damaged"):
        store.study("one").read()


def test_events_are_values_of_any_text() -> None:
    data = {"z": 1, "a": [1e-320, -0.0, 12345678901234567890], "text": "a\u0000\ud800ü"}
    text = to_text(MappingProxyType(data))
    assert text.isascii(), "PostgreSQL can store neither a zero character nor half a surrogate pair"
    assert repr(from_text(text, str)) == repr(data)
    with pytest.raises(IllegalInput, match=r"data\.metrics has the key 1, not text"):
        to_text({"metrics": [{1: 0.5}]})
    first, second = (Event(1, "note", None, "w", 2.0, {"a": 1}) for _ in range(2))
    assert first == second
    assert len({first, second}) == 1
