"""The log of one study: events that are only ever added, and the leases of the trials under evaluation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update

from formwright.core.errors import IllegalInput
from formwright.study.database import Database
from formwright.study.events import Event, Kind, Lease, Outcome, first_hash, from_text, next_hash, to_text
from formwright.study.schema import events, leases


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
            if taken.keys() != {asked} or self._is_held(connection, number, dead):
                return False
            connection.execute(self._end_lease, {"trial": number})
            attempts = 1 + self._count_claims(connection, number)
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

    def _is_held(self, connection: Connection, number: int, dead: Collection[str]) -> bool:
        alive = (leases.c.expires > self._database.clock(), leases.c.worker.not_in(list(dead)))
        return connection.execute(select(leases.c.number).where(*self._lease_of(number), *alive)).first() is not None

    def _count_claims(self, connection: Connection, number: int) -> int:
        claims = (events.c.study_id == self._study, events.c.kind == "claimed", events.c.number == number)
        return connection.scalars(select(func.count()).where(*claims)).one()


def _token() -> str:
    """Return a slot that is this call's alone, by which a second attempt recognises what the first one wrote."""
    return f"call:{uuid4().hex}"
