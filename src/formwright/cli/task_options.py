"""What several commands share that read a task: options that say what its labels are, and warnings about its rows."""

from typing import TYPE_CHECKING, Annotated

import typer

from formwright.cli import panels
from formwright.cli.output import note

if TYPE_CHECKING:
    from formwright.tasks.task import Task

LabelOption = Annotated[
    str,
    typer.Option(
        "--label",
        metavar="COLUMN[,COLUMN...]",
        help="Label column of your own file, or several columns of 0 and 1 (multi-label).",
        rich_help_panel=panels.DATA,
    ),
]
TaskKindOption = Annotated[
    str,
    typer.Option(
        "--task-kind",
        metavar="KIND",
        help="What the labels of your own file are: classification, regression or multi-label (default: guessed).",
        rich_help_panel=panels.DATA,
    ),
]


def columns_of(text: str | None) -> tuple[str, ...]:
    """List the columns that an option such as `--text first,second` names."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def print_warnings(task: "Task") -> None:
    """Print what looks wrong with the rows of a task, one line each, on standard error."""
    for warning in task.warnings:
        note(f"warning: {warning.message}")
