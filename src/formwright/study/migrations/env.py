"""Run the migrations on the connection that `database.upgrade` hands over; Alembic executes this file."""

from alembic import context

from formwright.study.database import VERSION_TABLE, metadata

# The caller's transaction holds everything, so that a database is never half made.
context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
context.run_migrations()
