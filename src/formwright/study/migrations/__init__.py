"""How the tables of a study database came to be: one file in `versions` for each change of the layout, by Alembic.

A change never edits an old file. It adds one, adds its revision to `study.database.REVISIONS`, and changes the tables
there; a test compares the two.
"""
