"""Studies by name, in one file or on one server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import Connection, insert, select

from formwright.core.checks import folder_name
from formwright.core.errors import IllegalInput, UnknownName
from formwright.study.database import Database, StoreError
from formwright.study.dialects import dialect_of
from formwright.study.events import Event, Kind, Lease, to_text
from formwright.study.log import Log
from formwright.study.schema import studies

__all__ = ["Event", "Kind", "Lease", "Log", "Store", "StoreError"]


class Store:
    """Hold the studies of one database; one store serves all threads of a process, and no other process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.place = database.place

    @classmethod
    def open(
        cls, url: str | Path, create: bool = False, timeout: float = 30.0, wait: bool = False, update: bool = False
    ) -> Store:
        """Open the database in a folder, in a file or at a URL; with `create`, make or update its tables if need be.

        `update` only updates those of an earlier version.

        A database that is missing, empty, another program's or of another version raises IllegalInput. Whatever is
        done later is tried again for `timeout` seconds before a locked or unreachable database is a StoreError; with
        `wait`, so is opening it: without, a server that cannot be reached is an error at once.
        """
        database = Database(dialect_of(url, timeout), timeout)
        try:
            database.open(create, wait, update)
        except BaseException:
            database.close()
            raise
        return cls(database)

    @classmethod
    def names_at(cls, url: str | Path, timeout: float = 30.0) -> list[str]:
        """List the studies of a database that may have no tables yet; refuse one that cannot be used. Write nothing."""
        if "://" not in str(url) and not Path(url).is_file():
            return []
        database = Database(dialect_of(url, timeout), timeout)
        try:
            return cls(database).studies() if database.has_tables() else []
        finally:
            database.close()

    def create_study(self, name: str, config: Mapping[str, Any]) -> None:
        """Add a study with an empty log; IllegalInput when the name is taken."""
        folder_name("a study", name)
        text = to_text(config)

        def action(connection: Connection, again: bool) -> None:
            found = connection.execute(select(studies.c.config).where(studies.c.name == name)).first()
            if found is None:
                connection.execute(insert(studies).values(name=name, created=self._database.clock(), config=text))
            elif not again or found.config != text:  # else an earlier attempt of this very call has written it
                raise IllegalInput(f"{self.place} has a study called {name!r} already: resume it or choose another.")

        self._database.write(0, action)

    def studies(self) -> list[str]:
        """Return the names of all studies, oldest first."""
        return list(self._identifiers())

    def study(self, name: str) -> Log:
        """Return the log of a study; UnknownName when there is none of that name."""
        known = self._identifiers()
        folder_name("a study", name)
        if name not in known:
            raise UnknownName("study", name, known)
        chosen = select(studies.c.config).where(studies.c.id == known[name])
        config = self._database.read(lambda connection: connection.scalars(chosen).one())
        return Log(self._database, known[name], name, config)

    def close(self) -> None:
        """Close every connection; the store cannot be used afterwards."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _identifiers(self) -> dict[str, int]:
        chosen = select(studies.c.name, studies.c.id).order_by(studies.c.id)
        return self._database.read(lambda connection: {row.name: row.id for row in connection.execute(chosen)})
