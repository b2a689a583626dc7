"""What happens to a log when locks, disks, connections and processes fail."""

import multiprocessing
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import event

from formwright.core.errors import IllegalInput
from formwright.study.store import Log, Store, StoreError

LONG = 3600.0
GONE = -1.0
NUMBERS = range(200)


@contextmanager
def held(store: Store, study: int):
    """Keep a writing transaction open, as a process that hangs would."""
    entered, leave = threading.Event(), threading.Event()

    def action(_connection: object, _again: bool) -> None:
        entered.set()
        assert leave.wait(20)

    thread = threading.Thread(target=store._database.write, args=(study, action))
    thread.start()
    assert entered.wait(20)
    try:
        yield leave
    finally:
        leave.set()
        thread.join()


def test_a_lock_is_waited_for_or_said_while_the_log_can_still_be_read(
    log: Log, open_store: Callable[[], Store], url: str
) -> None:
    with held(open_store(), log._study) as leave:
        threading.Timer(0.3, leave.set).start()
        assert log.ask(0, "w1", LONG, {})
    assert [event.kind for event in log.read()] == ["asked", "claimed"]
    written = log.append("note", "w1")
    with Store.open(url, timeout=0.3) as hasty, held(open_store(), log._study):
        mine = hasty.study("one")
        with pytest.raises(StoreError, match=r"has been locked by another process for 0\.3 s"):
            mine.append("note", "w2")
        assert mine.read()[-1] == written
    assert log.read()[-1] == written


@pytest.mark.parametrize(
    ("pragma", "message"),
    [("max_page_count = 1", r"no space left for .*study\.db"), ("query_only = ON", "cannot be opened for writing")],
)
def test_a_full_or_closed_disk_is_said_and_nothing_is_lost(tmp_path: Path, pragma: str, message: str) -> None:
    with Store.open(tmp_path, create=True) as store:
        store.create_study("one", {})
        before = [store.study("one").append("note", "w1", {"k": k}) for k in range(3)]
    with Store.open(tmp_path) as store:
        event.listen(store._database._dialect.engine, "connect", lambda link, _: link.execute(f"PRAGMA {pragma}"))
        store.close()  # so that the next connection meets the fault
        log = store.study("one")
        with pytest.raises(StoreError, match=message):
            log.append("note", "w1", {"much": "x" * 100_000})
    with Store.open(tmp_path) as store:
        log = store.study("one")
        assert log.read()[:3] == before
        assert log.append("note", "w1") == log.read()[-1]


def test_a_damaged_file_is_said(tmp_path: Path) -> None:
    with Store.open(tmp_path, create=True) as store:
        store.create_study("one", {})
        for _ in range(30):
            store.study("one").append("note", "w1", {"much": "x" * 2000})
    content = bytearray((tmp_path / "study.db").read_bytes())
    content[4096:] = b"\xaa" * (len(content) - 4096)
    (tmp_path / "study.db").write_bytes(content)
    with pytest.raises(IllegalInput, match="damaged one: database disk image is malformed"):
        Store.open(tmp_path).close()


class LostAnswers:
    """Let every first commit of a transaction succeed and its answer get lost, as when a network breaks."""

    def __init__(self, store: Store) -> None:
        self._sql = store._database._dialect.engine.dialect
        self._commit = self._sql.do_commit
        self._lose = True
        self.lost = 0

    def __call__(self, connection: Any) -> None:
        self._commit(connection)
        self._lose, lose = not self._lose, self._lose
        if lose:
            self.lost += 1
            raise self._error()

    def _error(self) -> Exception:
        if self._sql.name == "postgresql":
            return psycopg.OperationalError("server closed the connection unexpectedly")
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorname = "SQLITE_BUSY"
        return error


def test_a_call_whose_answer_is_lost_takes_effect_once(
    store: Store, open_store: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = LostAnswers(store)
    monkeypatch.setattr(store._database._dialect.engine.dialect, "do_commit", faults)
    store.create_study("one", {"seed": 1})
    log = store.study("one")
    assert log.append("started", "w1", {"k": 1}).data == {"k": 1}
    assert log.ask(0, "w1", GONE, {})
    assert not log.ask(0, "w1", GONE, {})
    assert log.claim(0, "w1", LONG)
    assert not log.claim(0, "w1", LONG)
    assert log.renew(0, "w1", LONG)
    assert log.finish(0, "w1", "told", {"accuracy": 0.5})
    assert not log.finish(0, "w1", "told", {"accuracy": 0.75})
    assert faults.lost >= 9
    fresh = open_store()
    assert fresh.studies() == ["one"]
    kinds = [event.kind for event in fresh.study("one").read()]
    assert kinds == ["started", "asked", "claimed", "claimed", "told"]


@pytest.mark.postgres
def test_a_server_that_ends_connections_loses_nothing(postgres: Any) -> None:
    url = postgres.new_url()
    with Store.open(url, create=True) as store:
        store.create_study("one", {})
        log = store.study("one")
        with psycopg.connect(host=str(postgres.folder), user="postgres", autocommit=True) as killer:
            for number in range(10):
                assert log.ask(number, "w1", LONG, {})
                killer.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
                assert log.finish(number, "w1", "told", {})
        assert [event.kind for event in log.read()] == ["asked", "claimed", "told"] * 10


@pytest.mark.postgres
@pytest.mark.slow
def test_a_server_that_crashes_and_returns_loses_nothing(postgres: Any) -> None:
    with Store.open(postgres.new_url(), create=True) as store:
        store.create_study("one", {})
        log = store.study("one")
        stop, written = threading.Event(), []

        def write() -> None:
            while not stop.is_set():
                written.append(log.append("note", "w1", {"k": len(written)}))

        thread = threading.Thread(target=write)
        thread.start()
        for _ in range(2):
            time.sleep(0.3)
            postgres.stop()
            postgres.start()
        time.sleep(0.3)
        stop.set()
        thread.join()
        assert log.read() == written
        assert [event.data["k"] for event in written] == list(range(len(written)))


@pytest.mark.postgres
@pytest.mark.slow
def test_a_server_that_stays_away_is_said(postgres: Any) -> None:
    url = postgres.new_url()
    Store.open(url, create=True).close()
    with Store.open(url, timeout=0.5) as store:
        postgres.stop()
        try:
            with pytest.raises(StoreError, match=r"cannot reach postgresql.*Check the server"):
                store.studies()
        finally:
            postgres.start()
        assert store.studies() == []


def race(url: str, worker: str, gate: Any, results: Any) -> None:
    """Ask for, take over and finish every trial, as fast as another process that does the same."""
    with Store.open(url, create=True) as store:
        log = store.study("one")

        def contest(attempt: Callable[[int], bool]) -> list[int]:
            won = []
            for number in NUMBERS:
                if number % 10 == 0:
                    gate.wait(30)  # side by side again: otherwise one runs ahead and there is no race
                won += [number] if attempt(number) else []
            return won

        asked = contest(lambda number: log.ask(number, worker, GONE, {"by": worker}))
        claimed = contest(lambda number: log.claim(number, worker, LONG))
        finished = contest(lambda number: log.finish(number, worker, "told", {"by": worker}))
        results.put((worker, asked, claimed, finished))


@pytest.mark.slow
@pytest.mark.parametrize(
    "url", ["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.long])], indirect=True
)
def test_two_processes_race_for_every_trial(url: str, log: Log) -> None:
    spawn = multiprocessing.get_context("spawn")
    gate, results = spawn.Barrier(2), spawn.Queue()
    processes = [spawn.Process(target=race, args=(url, f"w{k}", gate, results)) for k in range(2)]
    for process in processes:
        process.start()
    outcomes = [results.get(timeout=50) for _ in processes]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    for won in range(1, 4):
        assert sorted(number for outcome in outcomes for number in outcome[won]) == list(NUMBERS)
    events = log.read()
    assert len(events) == 4 * len(NUMBERS)  # asked, claimed, claimed, told
    assert {(event.worker, event.number) for event in events if event.kind == "told"} == {
        (worker, number) for worker, _, _, finished in outcomes for number in finished
    }


WRITER = """
import sys
from formwright.study.store import Store
log = Store.open(sys.argv[1]).study("one")
while True:
    print(log.append("note", "w1", {"much": "x" * 3000}).id, flush=True)
"""


@pytest.mark.slow
def test_a_killed_writer_loses_nothing_it_was_told_is_written(tmp_path: Path) -> None:
    with Store.open(tmp_path, create=True) as store:
        store.create_study("one", {})
    moments, promised = random.Random(7), []
    for _ in range(6):
        with subprocess.Popen([sys.executable, "-c", WRITER, tmp_path], stdout=subprocess.PIPE, text=True) as writer:
            promised.append(int(writer.stdout.readline()))
            time.sleep(moments.uniform(0.0, 0.05))
            writer.send_signal(signal.SIGKILL)
            promised += [int(line) for line in writer.stdout if line.endswith("\n")]
        with Store.open(tmp_path) as store:
            found = [event.id for event in store.study("one").read()]
            assert set(promised) <= set(found)
            assert store._database.read(lambda link: link.exec_driver_sql("PRAGMA integrity_check").scalar()) == "ok"


@pytest.mark.postgres
def test_a_worker_that_starts_while_the_server_is_away_waits(postgres: Any) -> None:
    url = postgres.new_url()
    with Store.open(url, create=True) as store:
        store.create_study("one", {})
    postgres.stop()
    back = threading.Timer(1.5, postgres.start)
    back.start()
    try:
        with pytest.raises(StoreError, match="cannot reach"):
            Store.open(url)
        with Store.open(url, wait=True) as store:
            assert store.studies() == ["one"]
    finally:
        back.join()


@pytest.mark.postgres
@pytest.mark.parametrize("change", [("postgres@", "nobody@"), ("/postgres?", "/nowhere?"), ("?", "?colour=red&")])
def test_what_a_server_refuses_for_good_is_not_waited_for(postgres: Any, change: tuple[str, str]) -> None:
    before = time.monotonic()
    with pytest.raises(StoreError, match="cannot be opened"):
        Store.open(postgres.url().replace(*change), wait=True)
    assert time.monotonic() - before < 10
