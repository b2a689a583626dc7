"""Whatever is changed in a database is noticed when it is read, and the message says where."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from formwright.core.errors import IllegalInput
from formwright.study.log import Log
from formwright.study.store import Store

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


def test_reading_on_checks_what_is_new(store: Store, filled: Log) -> None:
    events = filled.read()
    changed(store, "UPDATE events SET data = replace(data, '0.5', '0.9') WHERE id = 10")
    assert filled.read(events[-1].id) == []
    with pytest.raises(IllegalInput, match="event 10"):
        filled.read(events[5].id)


def test_writers_side_by_side_make_one_chain(open_store: Callable[[], Store], filled: Log) -> None:
    logs = [open_store().study("one") for _ in range(3)]
    for turn in range(12):
        logs[turn % 3].append("note", f"worker {turn % 3}", {"turn": turn})
    assert [event.data["turn"] for event in filled.read() if event.kind == "note"] == list(range(12))


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
