"""Fewer rows of a task, for quick trials and for learning curves."""

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from formwright.tasks.rows import ImageRows, PlainText, Splits, TextRows, TranslationRows
from formwright.tasks.spans import SpanRows
from formwright.tasks.task import Task, _made

R = TypeVar("R", bound=TextRows | PlainText | TranslationRows | ImageRows | SpanRows)


def shortened(task: Task, number: int) -> Task:
    """Give the same task with the first so many training rows; those for validation and test stay all."""
    return replace(task, splits=_FirstRows(task, number), load={"name": task.name, **task.load, "rows": number})


def first_rows(rows: R, number: int) -> R:
    """Give the first so many rows; all of them where there are fewer."""
    return some_rows(rows, slice(number))


def some_rows(rows: R, which: slice) -> R:
    """Give the rows of a slice."""
    columns = {field.name: getattr(rows, field.name) for field in fields(rows)}
    return replace(rows, **{name: column[which] for name, column in columns.items() if not isinstance(column, str)})


@dataclass(frozen=True)
class _FirstRows:
    """Make the rows of a task, and keep the first ones for training."""

    task: Task
    number: int

    def __call__(self) -> Splits[Any]:
        whole = _made(self.task)
        return replace(whole, train=first_rows(whole.train, self.number))
