"""The tables of a study database, and the revision of their layout that this version reads and writes."""

from __future__ import annotations

from pathlib import Path

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
    text,
)

from formwright.core.errors import IllegalInput

# Not Alembic's own name for it: Optuna keeps its revision there, and the two must not take each other's database.
VERSION_TABLE = "formwright_version"
# Oldest first. Listed here as well as in the migrations, so that opening a study need not import Alembic.
REVISIONS: tuple[str, ...] = ("0001", "0002")
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
        raise IllegalInput(f"{place} {_what_to_do(revision)}")
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


def _what_to_do(revision: str | None) -> str:
    if revision is None:
        return "holds no studies yet: start one with `formwright search`."
    return f"was written by an older formwright (revision {revision}): `formwright resume` updates it."
