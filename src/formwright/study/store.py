"""Studies by name, in one file or on one server, each with a log: events that are only added, and leases of trials."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update

from formwright.core.checks import folder_name
from formwright.core.errors import IllegalInput, UnknownName
from formwright.study.database import Database, StoreError, events, leases, studies
from formwright.study.dialects import dialect_of
from formwright.study.events import Event, Kind, Lease, Outcome, first_hash, from_text, next_hash, to_text


class Log:
    """Read and extend the log of one study; any number of threads, processes and machines may do so at once.

    Writers of a study come one after another, and identifiers grow in the order in which events become visible: who has
    read up to one identifier misses nothing by reading on after it. Each event has a hash of itself and of all before
    it, which is checked when it is read.
    """

    def __init__(self, database: Database, study: int, name: str, config: str) -> None:
        self._database = database
        self._study = study
        self._first_hash = first_hash(name, config)
        self.name = name
        self.config: Mapping[str, Any] = from_text(config, lambda: f"the configuration of {name!r} in {database.place}")
        # made once: putting a statement together takes longer than executing it
        mine = (leases.c.study_id == study, leases.c.number == bindparam("trial"))
        self._found = select(events).where(
            events.c.study_id == study, events.c.slot.in_(bindparam("slots", expanding=True))
        )
        before = events.alias()
        last_seen = select(func.coalesce(func.max(before.c.id), 0)).where(
            before.c.study_id == study, before.c.id <= bindparam("after")
        )
        # the last event that was seen comes along: its hash is part of the next one's
        self._later = (
            select(events)
            .where(events.c.study_id == study, events.c.id >= last_seen.scalar_subquery())
            .order_by(events.c.id)
        )
        last_hash = select(before.c.hash).where(before.c.study_id == study).order_by(before.c.id.desc()).limit(1)
        self._now = select(database.clock().label("at"), last_hash.scalar_subquery().label("hash"))
        self._end_lease = delete(leases).where(*mine)
        self._new_lease = insert(leases).values(study_id=study, expires=database.clock() + bindparam("seconds"))
        self._new_event = insert(events).values(study_id=study).returning(*events.c)

    def now(self) -> float:
        """Return the time that all workers of the study share, in seconds since 1970."""
        return self._database.now()

    def read(self, after: int = 0) -> list[Event]:
        """Return the events that follow the one with the identifier `after`, in order.

        Raise IllegalInput where one of them is not as it was written.
        """
        chosen = {"after": after}
        rows = self._database.read(lambda connection: connection.execute(self._later, chosen).all())
        return [self._event(row) for row in self._checked(rows, after)]

    def _checked(self, rows: Sequence[Row[Any]], after: int) -> Iterator[Row[Any]]:
        """Yield the rows behind `after`, each after its hash was compared."""
        known = self._first_hash
        for row in rows:
            if row.id > after:
                if next_hash(known, row) != row.hash:
                    raise IllegalInput(
                        f"{self._where(row)} is not as it was written, or one before it is missing: the database was "
                        "changed by another program, or is damaged. Restore it from a copy."
                    )
                yield row
            known = row.hash

    def _where(self, row: Row[Any]) -> str:
        trial = "" if row.number is None else f", trial {row.number}"
        return f"event {row.id} ({row.kind}{trial}) of {self.name!r} in {self._database.place}"

    def _event(self, row: Row[Any]) -> Event:
        return Event(row.id, row.kind, row.number, row.worker, row.at, from_text(row.data, lambda: self._where(row)))

    def append(
        self, kind: Kind, worker: str, data: Mapping[str, Any] | None = None, number: int | None = None
    ) -> Event:
        """Add an event that neither begins nor ends a trial; for those there are `ask`, `claim` and `finish`."""
        assert kind not in ("asked", "claimed", "told", "failed"), f"{kind} events change leases as well"
        text, token = to_text(data or {}), _token()

        def action(connection: Connection, again: bool) -> Event:
            written = self._in_slots(connection, token).get(token) if again else None
            return self._event(written or self._insert(connection, kind, number, worker, text, token))

        return self._database.write(self._study, action)

    def ask(self, number: int, worker: str, lease_seconds: float, data: Mapping[str, Any]) -> bool:
        """Add trial `number`, leased to `worker`; False, and nothing written, when it was asked for already."""
        text, token, asked = to_text(data), _token(), f"asked:{number}"

        def action(connection: Connection, _again: bool) -> bool:
            taken = self._in_slots(connection, asked, token)
            if asked in taken:
                return token in taken  # written by an earlier attempt of this very call
            self._insert(connection, "asked", number, worker, text, asked)
            self._grant(connection, number, worker, lease_seconds, 1, token)
            return True

        return self._database.write(self._study, action)

    def claim(self, number: int, worker: str, lease_seconds: float, dead: Collection[str] = ()) -> bool:
        """Take over a trial without an outcome whose lease has expired, is missing, or is held by one of `dead`."""
        token, asked = _token(), f"asked:{number}"

        def action(connection: Connection, _again: bool) -> bool:
            taken = self._in_slots(connection, asked, f"done:{number}", token)
            if token in taken:
                return True  # written by an earlier attempt of this very call
            alive = (leases.c.expires > self._database.clock(), leases.c.worker.not_in(list(dead)))
            held = select(leases.c.number).where(*self._lease_of(number), *alive)
            if taken.keys() != {asked} or connection.execute(held).first() is not None:
                return False
            connection.execute(self._end_lease, {"trial": number})
            claims = (events.c.study_id == self._study, events.c.kind == "claimed", events.c.number == number)
            attempts = 1 + connection.scalars(select(func.count()).where(*claims)).one()
            self._grant(connection, number, worker, lease_seconds, attempts, token)
            return True

        return self._database.write(self._study, action)

    def renew(self, number: int, worker: str, lease_seconds: float) -> bool:
        """Prolong the lease to `lease_seconds` from now; False when it is another's by now, or gone."""

        def action(connection: Connection, _again: bool) -> bool:
            mine = update(leases).where(*self._lease_of(number), leases.c.worker == worker)
            return connection.execute(mine.values(expires=self._database.clock() + lease_seconds)).rowcount == 1

        return self._database.write(self._study, action)

    def finish(self, number: int, worker: str, kind: Outcome, data: Mapping[str, Any]) -> bool:
        """Add the outcome of a trial and end its lease; False, and nothing written, when it has an outcome already."""
        text, asked, done = to_text(data), f"asked:{number}", f"done:{number}"

        def action(connection: Connection, again: bool) -> bool:
            taken = self._in_slots(connection, asked, done)
            assert asked in taken, f"trial {number} was never asked for"
            if done in taken:
                found = taken[done]  # possibly written by an earlier attempt of this very call
                return again and (found.kind, found.worker, found.data) == (kind, worker, text)
            self._insert(connection, kind, number, worker, text, done)
            connection.execute(self._end_lease, {"trial": number})
            return True

        return self._database.write(self._study, action)

    def leases(self) -> dict[int, Lease]:
        """Return the leases of the trials without an outcome, by trial number, expired ones included."""
        columns = (leases.c.number, leases.c.worker, leases.c.expires, leases.c.attempts)
        chosen = select(*columns).where(leases.c.study_id == self._study).order_by(leases.c.number)
        return self._database.read(lambda connection: {row.number: Lease(*row) for row in connection.execute(chosen)})

    def _lease_of(self, number: int) -> tuple[Any, Any]:
        return leases.c.study_id == self._study, leases.c.number == number

    def _in_slots(self, connection: Connection, *slots: str) -> dict[str, Row[Any]]:
        found = connection.execute(self._found, {"slots": list(slots)})
        return {row.slot: row for row in found}

    def _insert(
        self, connection: Connection, kind: Kind, number: int | None, worker: str, text: str, slot: str
    ) -> Row[Any]:
        now = connection.execute(self._now).one()
        values = {"kind": kind, "number": number, "worker": worker, "at": now.at, "data": text, "slot": slot}
        values["hash"] = next_hash(now.hash or self._first_hash, SimpleNamespace(**values))
        return connection.execute(self._new_event, values).one()

    def _grant(
        self, connection: Connection, number: int, worker: str, seconds: float, attempts: int, token: str
    ) -> None:
        self._insert(connection, "claimed", number, worker, to_text({"attempt": attempts}), token)
        values = {"number": number, "worker": worker, "attempts": attempts, "seconds": seconds}
        connection.execute(self._new_lease, values)


def _token() -> str:
    """Return a slot that is this call's alone, by which a second attempt recognises what the first one wrote."""
    return f"call:{uuid4().hex}"


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

    def __exit__(self, *_: object) -> None:
        self.close()

    def _identifiers(self) -> dict[str, int]:
        chosen = select(studies.c.name, studies.c.id).order_by(studies.c.id)
        return self._database.read(lambda connection: {row.name: row.id for row in connection.execute(chosen)})
