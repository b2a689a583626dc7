"""Generated counterparts of GLUE's nine tasks, each in its own file."""
