"""The two databases a log may live in: how each is opened, locked and asked for the time, and what its errors mean."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from urllib.parse import quote

from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Double,
    bindparam,
    cast,
    create_engine,
    event,
    extract,
    func,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, ProgrammingError

from formwright.core.errors import IllegalInput
from formwright.core.extras import need
from formwright.core.text import without_password

Trouble = Literal["busy", "lost", "full", "damaged", "refused", "denied", "failing"]

FILE_NAME = "study.db"
_FILE_SUFFIXES = (".db", ".sqlite", ".sqlite3")
_FORMS = "a folder, a file such as `study.db`, `sqlite:///study.db` or `postgresql+psycopg://user@host/database`"
# What SQLite says, without a name for it, where a file with our tables was changed by someone.
_UNREADABLE = ("Could not decode", "malformed")
# The first half of the key of our advisory locks, so that they are nobody else's: "form" in ASCII.
_LOCK_SPACE = 0x666F726D


class SQLite:
    """Keep the log in one file, read and written by processes of one machine."""

    def __init__(self, path: Path, timeout: float) -> None:
        self._path = path
        self._copy: TemporaryDirectory[str] | None = None
        self._file, self._writable = path, True
        self.place = str(path)
        self.engine = create_engine(
            URL.create("sqlite", database=str(path)),
            creator=lambda: _connect(self._file, timeout, self._writable),
            max_overflow=-1,
        )
        event.listen(self.engine, "begin", _begin)

    def prepare(self, create: bool) -> None:
        """Check that there is something to connect to; with `create`, make an empty database of a missing file."""
        if self._path.is_file():
            if not create and not _can_write(self._path):
                self._read_only()
            return
        if not create:
            raise IllegalInput(f"there is no study at {self._path}: name its folder, its file or its URL.")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch()
        except OSError as error:
            raise IllegalInput(f"cannot make {self._path}: {error.strerror}.") from error

    def _read_only(self) -> None:
        """Only read a file that cannot be written, or a copy of it where SQLite cannot put its own files next to it."""
        self._writable = False
        try:
            with closing(_connect(self._path, 0.0, writable=False)) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.OperationalError:
            try:
                self._copy = TemporaryDirectory(prefix="formwright-", ignore_cleanup_errors=True)
                for end in ("", "-wal"):  # which holds what was written last by a process that was killed
                    if os.path.isfile(f"{self._path}{end}"):
                        shutil.copyfile(f"{self._path}{end}", Path(self._copy.name) / f"{FILE_NAME}{end}")
            except OSError as error:
                raise IllegalInput(f"cannot read {self._path}: {error.strerror or error}.") from None
            self._file = Path(self._copy.name) / FILE_NAME

    def close(self) -> None:
        self.engine.dispose()
        if self._copy is not None:
            self._copy.cleanup()

    def lock(self, connection: Connection, study: int) -> None:
        """Do nothing: the transaction began as the only writer of the file."""

    def clock(self) -> ColumnElement[float]:
        """Return the expression for the time, in seconds since 1970, that all workers share."""
        return bindparam("now", callable_=time.time, type_=Double)  # called whenever a statement is executed

    def trouble(self, error: DBAPIError) -> Trouble | None:
        """Tell what an error of the database means to a user; None if it is our mistake."""
        name = getattr(error.orig, "sqlite_errorname", "")
        kinds: dict[str, Trouble] = {
            "SQLITE_BUSY": "busy",
            "SQLITE_LOCKED": "busy",
            "SQLITE_FULL": "full",
            "SQLITE_NOTADB": "damaged",
            "SQLITE_CORRUPT": "damaged",
            "SQLITE_CANTOPEN": "refused",
            "SQLITE_READONLY": "refused",
            "SQLITE_PERM": "refused",
            "SQLITE_IOERR": "failing",
        }
        if str(error.orig).startswith(_UNREADABLE):
            return "damaged"
        return next((kind for start, kind in kinds.items() if name.startswith(start)), None)


class PostgreSQL:
    """Keep the log on a server, read and written by any number of machines."""

    def __init__(self, url: URL, timeout: float) -> None:
        need("psycopg", "postgres")
        self.place = without_password(url.render_as_string(hide_password=False))
        # keepalives: a server that vanished without a word is noticed after 25 s, not after two hours
        defaults = {"connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
        self.engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            connect_args={key: value for key, value in defaults.items() if key not in url.query},
            # whatever the server's default: a statement after the lock must see what was committed before it
            isolation_level="READ COMMITTED",
            max_overflow=-1,
        )
        event.listen(self.engine, "connect", lambda connection, _record: _limit_waiting(connection, timeout))

    def prepare(self, create: bool) -> None:
        """Do nothing: the server says itself what is missing."""

    def close(self) -> None:
        self.engine.dispose()

    def lock(self, connection: Connection, study: int) -> None:
        """Keep all other writers of a study out until the transaction ends; 0 stands for the table of studies."""
        connection.execute(select(func.pg_advisory_xact_lock(_LOCK_SPACE, study)))

    def clock(self) -> ColumnElement[float]:
        return cast(extract("epoch", func.clock_timestamp()), Double)

    def trouble(self, error: DBAPIError) -> Trouble | None:
        state: str = getattr(error.orig, "sqlstate", None) or ""
        if state in ("40001", "40P01", "53300", "55P03"):  # conflicts, too many connections, a lock waited for
            return "busy"
        if state.startswith("53"):
            return "full"
        if state in ("25006", "42501"):  # a read-only server, no permission
            return "refused"
        if not state and error.statement is None and _is_denied(error):
            return "denied"
        # without a state it is the connection that failed, not a statement
        if (
            error.connection_invalidated
            or state.startswith(("08", "57P"))
            or (not state and isinstance(error, OperationalError))
        ):
            return "lost"
        return None


Dialect = SQLite | PostgreSQL


def dialect_of(url: str | Path, timeout: float) -> Dialect:
    """Return the database that a folder, a file or a URL means."""
    if isinstance(url, Path) or "://" not in url:
        return SQLite(_file(Path(url)), timeout)
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise IllegalInput(f"cannot read the storage {without_password(url)!r}. Give {_FORMS}.") from error
    backend = parsed.get_backend_name()
    if backend == "sqlite" and parsed.database not in (None, "", ":memory:") and not parsed.query:
        return SQLite(_file(Path(str(parsed.database))), timeout)
    if backend in ("postgresql", "postgres") and parsed.drivername in (backend, "postgresql+psycopg"):
        return PostgreSQL(parsed, timeout)
    raise IllegalInput(f"cannot keep a study in {without_password(url)}. Give {_FORMS}.")


def _file(path: Path) -> Path:
    is_folder = path.is_dir() or (not path.exists() and path.suffix not in _FILE_SUFFIXES)
    return path / FILE_NAME if is_folder else path


def _can_write(path: Path) -> bool:
    effective = os.access in os.supports_effective_ids
    return all(os.access(one, os.W_OK, effective_ids=effective) for one in (path, path.absolute().parent))


def _connect(path: Path, timeout: float, writable: bool) -> sqlite3.Connection:
    # mode=rw: a file that was moved away is an error, not a reason to make an empty one in its place
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode=rw", uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        # In WAL mode NORMAL survives any kill of a process. A power cut may undo the last trials, which are then asked
        # for again; FULL would wait for the disk, 4 to 10 ms for each of a trial's two commits.
        connection.execute("PRAGMA synchronous = NORMAL")
        if not writable:
            connection.execute("PRAGMA query_only = ON")
        elif connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            connection.execute("PRAGMA journal_mode = WAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _is_denied(error: DBAPIError) -> bool:
    """Tell whether a server, or the library, refused a connection for good; the server gives no code for that."""
    words = ("authentication failed", "no password supplied", "does not exist", "no pg_hba.conf entry")
    return isinstance(error, ProgrammingError) or any(word in str(error.orig) for word in words)


def _begin(connection: Connection) -> None:
    # a transaction that reads first and writes later may fail half-way for want of the lock: writers take it at once
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _limit_waiting(connection: Any, timeout: float) -> None:
    # a worker cut off in the middle of a transaction must not keep the others waiting for ever
    milliseconds = max(1, round(timeout * 1000))
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {milliseconds}")
        cursor.execute(f"SET idle_in_transaction_session_timeout = {milliseconds}")
    connection.commit()
