"""How databases are named and set up, and what their errors mean."""

import os
import sqlite3
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg import errors
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, ProgrammingError

from formwright.core.errors import IllegalInput, MissingExtra
from formwright.study import dialects
from formwright.study.store import Store


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///x.db?mode=ro",
        "mysql://me:secret@host/db",
        "postgresql+asyncpg://me:secret@host/db",
        "postgresql+psycopg://host:port/db",
        "postgresql+psycopg://me:secret@host:port/db",
        "postgresql+psycopg://me:sec@secret@host:port/db",
        "://",
    ],
)
def test_other_storages_are_refused(url: str) -> None:
    with pytest.raises(IllegalInput, match=r"Give a folder, a file such as") as caught:
        Store.open(url, create=True)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["postgresql+psycopg", "postgresql", "postgres"])
def test_all_spellings_of_postgres_mean_one_driver(name: str) -> None:
    dialect = dialects.dialect_of(f"{name}://me:secret@host/db", timeout=1)
    assert isinstance(dialect, dialects.PostgreSQL)
    assert dialect.engine.url.drivername == "postgresql+psycopg"
    assert "secret" not in dialect.place


def test_postgres_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"formwright\[postgres\]"):
        Store.open("postgresql://me@host/db")


def test_sqlite_is_set_to_survive_kills_and_to_wait(tmp_path: Path) -> None:
    with Store.open(tmp_path, create=True) as store:
        for pragma, value in [("journal_mode", "wal"), ("busy_timeout", 30_000), ("foreign_keys", 1)]:
            found = store._database.read(
                lambda connection, p=pragma: connection.exec_driver_sql(f"PRAGMA {p}").scalar()
            )
            assert found == value


def test_a_file_moved_away_is_not_replaced(tmp_path: Path) -> None:
    with Store.open(tmp_path, create=True) as store:
        store.close()
        os.rename(tmp_path / "study.db", tmp_path / "elsewhere.db")
        with pytest.raises(OSError, match="unable to open database file"):
            store.studies()
    assert not (tmp_path / "study.db").exists()


def test_a_database_of_another_mode_becomes_wal(tmp_path: Path) -> None:
    with Store.open(tmp_path, create=True):
        pass
    connection = sqlite3.connect(tmp_path / "study.db")
    assert connection.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    connection.close()
    with Store.open(tmp_path) as store:
        mode = store._database.read(lambda connection: connection.exec_driver_sql("PRAGMA journal_mode").scalar())
    assert mode == "wal"


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (OperationalError("", None, errors.LockNotAvailable()), "busy"),
        (OperationalError("", None, errors.TooManyConnections()), "busy"),
        (OperationalError("", None, errors.DiskFull()), "full"),
        (OperationalError("", None, errors.AdminShutdown()), "lost"),
        (OperationalError("", None, psycopg.OperationalError("connection refused")), "lost"),
        (DBAPIError("", None, psycopg.Error("closed"), connection_invalidated=True), "lost"),
        (ProgrammingError("", None, errors.InsufficientPrivilege()), "refused"),
        (ProgrammingError("", None, errors.UndefinedTable()), None),
        (IntegrityError("", None, errors.UniqueViolation()), None),
    ],
)
def test_the_errors_of_postgres_have_a_meaning(error: DBAPIError, trouble: str | None) -> None:
    assert dialects.dialect_of("postgresql://me@host/db", timeout=1).trouble(error) == trouble


def test_only_troubles_of_the_file_are_the_users(tmp_path: Path) -> None:
    dialect = dialects.dialect_of(tmp_path, timeout=1)
    connection = sqlite3.connect(tmp_path / "study.db")
    with pytest.raises(sqlite3.OperationalError, match="no such table") as caught:
        connection.execute("SELECT * FROM missing")
    connection.close()
    assert dialect.trouble(OperationalError("", None, caught.value)) is None
