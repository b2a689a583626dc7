"""The command line: one subcommand per file, and nothing heavy imported before it is needed."""
