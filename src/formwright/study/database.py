"""Transactions that are tried again until they succeed or time is up, and errors in the user's words."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, select
from sqlalchemy.exc import DBAPIError

from formwright.core.errors import FormwrightError, IllegalInput
from formwright.study import schema
from formwright.study.dialects import Dialect, Trouble

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
            return schema.is_current(connection, self.place, create, update)

    def _upgrade(self, connection: Connection, _again: bool) -> None:
        # looked at again, now under the lock: another process may have been quicker
        if not schema.is_current(connection, self.place, create=True):
            schema.upgrade(connection)

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
