"""Studies by name, how databases are named and set up, and what is said about those that cannot be used."""

import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg import errors
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, ProgrammingError

from formwright.core.errors import IllegalInput, MissingExtra, UnknownName
from formwright.study import dialects
from formwright.study.store import Store


def test_a_study_keeps_its_name_and_config(store: Store, open_store: Callable[[], Store]) -> None:
    config = {"seed": 3, "limit": 0.1, "space": {"name": "größe", "layers": [1, 2]}}
    store.create_study("first", config)
    store.create_study("second", {})
    again = open_store()
    assert again.studies() == ["first", "second"]
    assert (again.study("first").name, again.study("first").config) == ("first", config)
    assert again.study("first").read() == []


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a\0b",
        "two\nlines",
        "\ud800",
        "../outside",
        "..",
        ".",
        ".hidden",
        "/tmp",
        "a/b",
        "a\\b",
        "\x1b[2J",
        "x" * 201,
    ],
)
def test_a_name_leads_nowhere_else(store: Store, name: str) -> None:
    with pytest.raises(IllegalInput, match="cannot be called"):
        store.create_study(name, {})
    with pytest.raises(IllegalInput, match="cannot be called"):
        store.study(name)


def test_a_name_is_taken_once_and_a_config_is_plain_json(store: Store) -> None:
    with pytest.raises(IllegalInput, match="plain, finite JSON"):
        store.create_study("one", {"limit": float("nan")})
    assert store.studies() == []
    store.create_study("flexibert", {"seed": 1})
    with pytest.raises(IllegalInput, match="has a study called 'flexibert' already"):
        store.create_study("flexibert", {"seed": 1})
    assert store.study("flexibert").config == {"seed": 1}
    with pytest.raises(
        UnknownName, match=r"^no study called 'flexbert'\. Nearest: 'flexibert'\. There are: flexibert\.$"
    ):
        store.study("flexbert")


@pytest.mark.parametrize(
    ("given", "made"), [("out", "out/study.db"), ("out/my.db", "out/my.db"), ("v1.5 run", "v1.5 run/study.db")]
)
def test_a_folder_or_a_file_is_a_place(tmp_path: Path, given: str, made: str) -> None:
    with Store.open(tmp_path / given, create=True) as store:
        store.create_study("one", {})
        assert store.place == str(tmp_path / made)
    for form in (tmp_path / given, str(tmp_path / made), f"sqlite:///{tmp_path / made}"):
        with Store.open(form) as store:
            assert store.studies() == ["one"]


def test_a_path_may_hold_any_character(tmp_path: Path) -> None:
    folder = tmp_path / "50% of a?b#c & ü"
    with Store.open(folder, create=True) as store:
        store.create_study("one", {})
    assert [path.name for path in folder.iterdir()] == ["study.db"]
    with Store.open(folder) as store:
        assert store.studies() == ["one"]


def test_places_that_hold_no_study_are_said_and_left_alone(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="there is no study at"):
        Store.open(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "out").write_text("hello")
    with pytest.raises(IllegalInput, match="cannot make"):
        Store.open(tmp_path / "out" / "study.db", create=True)


@pytest.mark.parametrize("create", [False, True])
def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, create: bool) -> None:
    path = tmp_path / "study.db"
    path.write_text("This is a diary, not a database. " * 200)
    before = path.read_bytes()
    with pytest.raises(IllegalInput, match="is not a study database, or a damaged one: file is not a database"):
        Store.open(path, create=create)
    assert path.read_bytes() == before


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
    with Store.open(tmp_path, create=True):
        pass
    connection = sqlite3.connect(tmp_path / "study.db")
    assert connection.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    connection.close()
    with Store.open(tmp_path) as store:
        mode = store._database.read(lambda connection: connection.exec_driver_sql("PRAGMA journal_mode").scalar())
    assert mode == "wal"


def test_a_file_moved_away_is_not_replaced(tmp_path: Path) -> None:
    with Store.open(tmp_path, create=True) as store:
        store.close()
        os.rename(tmp_path / "study.db", tmp_path / "elsewhere.db")
        with pytest.raises(OSError, match="unable to open database file"):
            store.studies()
    assert not (tmp_path / "study.db").exists()


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
