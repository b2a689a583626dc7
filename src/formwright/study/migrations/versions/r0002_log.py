"""Make the tables of the log, and let nobody change an event."""

import sqlalchemy as sa
from alembic import op

revision = "0002"  # of formats before the first release none is read
down_revision = None
branch_labels = None
depends_on = None

_SQLITE_TRIGGER = """
CREATE TRIGGER events_no_{name} BEFORE {action} ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END
"""

_POSTGRESQL_FUNCTION = """
CREATE FUNCTION formwright_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'events are append-only'; END $$
"""

_POSTGRESQL_TRIGGER = """
CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON events
FOR EACH STATEMENT EXECUTE FUNCTION formwright_append_only()
"""


def upgrade() -> None:
    _make_studies()
    _make_events()
    _make_leases()
    if op.get_context().dialect.name == "sqlite":
        op.execute(_SQLITE_TRIGGER.format(name="update", action="UPDATE"))
        op.execute(_SQLITE_TRIGGER.format(name="delete", action="DELETE"))
    else:
        op.execute(_POSTGRESQL_FUNCTION)
        op.execute(_POSTGRESQL_TRIGGER)


def _make_studies() -> None:
    op.create_table(
        "studies",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("config", sa.Text, nullable=False),
        sa.UniqueConstraint("name", name="studies_name"),
    )


def _make_events() -> None:
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", name="events_study"), nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("number", sa.Integer),
        sa.Column("worker", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("slot", sa.Text),
        sa.Column("hash", sa.Text),
        sa.UniqueConstraint("study_id", "slot", name="events_slot"),
        sqlite_autoincrement=True,
    )
    op.create_index("events_order", "events", ["study_id", "id"])


def _make_leases() -> None:
    op.create_table(
        "leases",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", name="leases_study"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("worker", sa.Text, nullable=False),
        sa.Column("expires", sa.Double, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
    )
