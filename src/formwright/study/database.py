"""The tables of a study database, and transactions that are retried until they succeed or time is up."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    inspect,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError

from formwright.core.errors import FormwrightError, IllegalInput
from formwright.study.dialects import Dialect, Trouble

# Not Alembic's own name for it: Optuna keeps its revision there, and the two must not take each other's database.
VERSION_TABLE = "formwright_version"
# Oldest first. Listed here as well as in the migrations, so that opening a study need not import Alembic.
REVISIONS: tuple[str, ...] = ("0002",)
MIGRATIONS = Path(__file__).parent / "migrations"

metadata = MetaData()

studies = Table(
    "studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("config", Text, nullable=False),
    UniqueConstraint("name", name="studies_name"),
)

# Append-only: triggers refuse any other change. `slot` is what may happen once: `asked:7`, `done:7`, a call's token.
# `hash` is that of the event and of all before it (`events.next_hash`), checked whenever events are read.
events = Table(
    "events",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("study_id", Integer, ForeignKey("studies.id", name="events_study"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("number", Integer),
    Column("worker", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("data", Text, nullable=False),
    Column("slot", Text),
    Column("hash", Text),
    UniqueConstraint("study_id", "slot", name="events_slot"),
    Index("events_order", "study_id", "id"),
    sqlite_autoincrement=True,
)

leases = Table(
    "leases",
    metadata,
    Column("study_id", Integer, ForeignKey("studies.id", name="leases_study"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("worker", Text, nullable=False),
    Column("expires", Double, nullable=False),
    Column("attempts", Integer, nullable=False),
)


def is_current(connection: Connection, place: str, create: bool, update: bool = False) -> bool:
    """Tell whether the tables are the ones this version knows; False only where they may be made so.

    A database of another program or of a newer version raises IllegalInput, and so does, without `create`, an
    empty one and, unless `update` or `create` allow it, one of an older version.
    """
    revision = _revision(connection, place)
    if revision == REVISIONS[-1]:
        return True
    if revision is not None and revision not in REVISIONS:
        raise IllegalInput(f"{place} was written by a newer formwright (revision {revision}): update formwright.")
    if not create and not (update and revision is not None):
        if revision is None:
            raise IllegalInput(f"{place} holds no studies yet: start one with `formwright search`.")
        raise IllegalInput(
            f"{place} was written by an older formwright (revision {revision}): `formwright resume` updates it."
        )
    return False


def upgrade(connection: Connection) -> None:
    """Make or update the tables, within the transaction that `connection` is in."""
    # 0.3 s and more: imported only by who makes or updates a database
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _revision(connection: Connection, place: str) -> str | None:
    found = inspect(connection).get_table_names()
    if VERSION_TABLE in found:
        revision: str | None = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))
        return revision
    # a server's database may be shared with others, as long as their tables have other names; a file is not shared
    others = found if connection.dialect.name == "sqlite" else sorted(set(found) & set(metadata.tables))
    if others:
        names = ", ".join(others[:3])
        raise IllegalInput(f"{place} belongs to another program (it has the tables {names}): name another database.")
    return None


Result = TypeVar("Result")

_LONGEST_PAUSE = 1.0


class StoreError(FormwrightError, OSError):
    """Say that a study's database cannot be used now, why, and what to do; what was recorded is still there."""


_MESSAGES: dict[Trouble, str] = {
    "busy": "{place} has been locked by another process for {timeout:g} s. End that process, then resume the study.",
    "lost": "cannot reach {place}: {reason}. Check the server, the network and the URL, then try again.",
    "full": "no space left for {place}: {reason}. Free some, then resume the study.",
    "refused": "{place} cannot be opened for writing: {reason}. Check its owner and permissions.",
    "denied": "{place} cannot be opened: {reason}. Check user, password, database and options of the URL.",
    "failing": "the disk fails under {place}: {reason}. Check it, then resume the study.",
}


class Database:
    """Run transactions on the database of a dialect, for any number of threads; each has its own connection."""

    def __init__(self, dialect: Dialect, timeout: float) -> None:
        self._dialect = dialect
        self._timeout = timeout
        self._writer = dialect.engine.execution_options(writes=True)
        self.place = dialect.place
        self.clock = dialect.clock

    def open(self, create: bool, wait: bool = False, update: bool = False) -> None:
        """Check that the tables are there, or make or update them as allowed; `wait` for a server that is away."""
        self._dialect.prepare(create)
        retried: tuple[Trouble, ...] = ("busy", "lost") if wait else ("busy",)
        current = self._insist(lambda _again: self._is_current(create, update), retried)
        if not current:
            self.write(0, self._upgrade)

    def has_tables(self) -> bool:
        """Tell whether all tables are there; refuse a database of another program."""
        return self._insist(lambda _again: self._is_current(create=True, update=False), ("busy",))

    def read(self, action: Callable[[Connection], Result]) -> Result:
        """Return what `action` reads in one transaction."""

        def attempt(_again: bool) -> Result:
            with self._dialect.engine.begin() as connection:
                return action(connection)

        return self._insist(attempt)

    def write(self, study: int, action: Callable[[Connection, bool], Result]) -> Result:
        """Return what `action` returns after it wrote, alone among the writers of `study`, in one transaction.

        It may be called again: after a lost connection nobody knows whether the transaction was committed. Then its
        second argument is True, and it must look for its own traces first.
        """

        def attempt(again: bool) -> Result:
            with self._writer.begin() as connection:
                self._dialect.lock(connection, study)
                return action(connection, again)

        return self._insist(attempt)

    def now(self) -> float:
        """Return the time that all workers share, in seconds since 1970."""
        return self.read(lambda connection: float(connection.scalars(select(self.clock())).one()))

    def close(self) -> None:
        self._dialect.close()

    def _is_current(self, create: bool, update: bool) -> bool:
        with self._dialect.engine.begin() as connection:
            return is_current(connection, self.place, create, update)

    def _upgrade(self, connection: Connection, _again: bool) -> None:
        # looked at again, now under the lock: another process may have been quicker
        if not is_current(connection, self.place, create=True):
            upgrade(connection)

    def _insist(self, attempt: Callable[[bool], Result], retried: tuple[Trouble, ...] = ("busy", "lost")) -> Result:
        deadline = time.monotonic() + self._timeout
        pause, again = 0.01, False
        while True:
            try:
                return attempt(again)
            except DBAPIError as error:
                trouble = self._dialect.trouble(error)
                if trouble is None:
                    raise
                if trouble not in retried or time.monotonic() + pause > deadline:
                    raise self._described(trouble, error) from error
            time.sleep(pause)
            pause, again = min(2 * pause, _LONGEST_PAUSE), True

    def _described(self, trouble: Trouble, error: DBAPIError) -> FormwrightError:
        reason = " ".join(str(error.orig).split()).rstrip(".")
        if trouble == "damaged":
            return IllegalInput(f"{self.place} is not a study database, or a damaged one: {reason}.")
        return StoreError(_MESSAGES[trouble].format(place=self.place, timeout=self._timeout, reason=reason))
