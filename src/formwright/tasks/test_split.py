"""The only access to test rows, for the final evaluation alone: no search may import this module."""

from typing import Any

from formwright.core.errors import IllegalInput
from formwright.tasks.task import Task, _made


def open_test(task: Task) -> Any:
    """Return the test rows of a task, for one final evaluation; raise if the task has none."""
    splits = _made(task)
    if splits.test is None:
        raise IllegalInput(
            f"the task {task.name} has no test rows: validation is {splits.division}. "
            "Load it without `official_dev` to keep half of those rows for the test."
        )
    return splits.test
