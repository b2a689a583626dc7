"""Give every event a hash of itself and of all before it."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from alembic import op

from formwright.study.events import first_hash, next_hash

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, and fill it for the events that are there as they are there."""
    op.add_column("events", sa.Column("hash", sa.Text))
    connection = op.get_bind()
    set_hash = sa.text("UPDATE events SET hash = :hash WHERE id = :id")
    with _changeable():
        for study in connection.execute(sa.text("SELECT id, name, config FROM studies")).all():
            known = first_hash(study.name, study.config)
            of_study = sa.text("SELECT * FROM events WHERE study_id = :study ORDER BY id")
            for event in connection.execute(of_study, {"study": study.id}).all():
                known = next_hash(known, event)
                connection.execute(set_hash, {"hash": known, "id": event.id})


@contextmanager
def _changeable() -> Iterator[None]:
    if op.get_context().dialect.name == "sqlite":
        made = op.get_bind().scalar(sa.text("SELECT sql FROM sqlite_master WHERE name = 'events_no_update'"))
        op.execute("DROP TRIGGER events_no_update")
        yield
        op.execute(str(made))
    else:
        op.execute("ALTER TABLE events DISABLE TRIGGER events_append_only")
        yield
        op.execute("ALTER TABLE events ENABLE TRIGGER events_append_only")
