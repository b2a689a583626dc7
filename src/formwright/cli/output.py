"""How commands talk: facts as JSON or as tables, both on standard output."""

import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


def print_json(data: Any) -> None:
    """Print one JSON value."""
    typer.echo(json.dumps(data, indent=2, ensure_ascii=False))


def console() -> "Console":
    """Give the terminal, or a plain stream when output goes elsewhere."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under headings; a column whose heading starts with `>` stands to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left", no_wrap=index == 0)
    for row in rows:
        table.add_row(*[Text(cell) for cell in row])  # plain text: names are never markup
    console().print(table)


def large(number: int) -> str:
    """Write a count so that a person can read it: digits in groups, and a power of ten beyond twelve of them."""
    return f"{number:,}" if number < 10**12 else _scientific(number)


def _scientific(number: int) -> str:
    # a decimal, because counts beyond the largest float are common
    return f"{Decimal(number):.2e}".replace("+", "")
