"""Fewer rows of a task, for quick trials and for learning curves."""

from dataclasses import fields, replace
from typing import TypeVar

from formwright.tasks.rows import ImageRows, PlainText, TextRows, TranslationRows
from formwright.tasks.spans import SpanRows

R = TypeVar("R", TextRows, PlainText, TranslationRows, ImageRows, SpanRows)


def first_rows(rows: R, number: int) -> R:
    """Give the first so many rows; all of them where there are fewer."""
    return replace(rows, **{field.name: getattr(rows, field.name)[:number] for field in fields(rows)})
