"""What a search remembers: the append-only log of a study, in SQLite or PostgreSQL."""
