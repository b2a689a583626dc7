"""The only door to test rows. Nothing that searches may import this module: it is for the final evaluation alone."""

from formwright.tasks.rows import Rows
from formwright.tasks.task import Task, _made


def open_test(task: Task) -> Rows:
    """Return the test rows of a task, for judging a finished choice once."""
    return _made(task).test
