"""How commands talk: facts as JSON or as tables, both on standard output."""

import json
import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal
from textwrap import indent
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod


def print_json(data: Any) -> None:
    """Print one JSON value."""
    typer.echo(_json_text(data))


def print_json_with(data: dict[str, Any], name: str, items: Iterable[Any]) -> None:
    """Print one JSON object with a last field that lists items, each printed as it comes and kept no longer."""
    typer.echo(_json_text(data).removesuffix("\n}"), nl=False)
    typer.echo(f',\n  "{name}": [', nl=False)
    separator = ""
    for item in items:
        typer.echo(separator + "\n" + indent(_json_text(item), "    "), nl=False)
        separator = ","
    typer.echo("\n  ]\n}" if separator else "]\n}")


def _json_text(data: Any) -> str:
    text = json.dumps(data, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # letters that the terminal does not know, or half a letter in a file's name
        return json.dumps(data, indent=2)
    return text


def console() -> "Console":
    """Give the terminal, or a plain stream when output goes elsewhere."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under headings; a column whose heading starts with `>` holds numbers and stands to the right.

    Where the terminal is narrow, words are wrapped; names and numbers are never cut.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    cells = [[Text(cell) for cell in row] for row in rows]  # plain text: names are never markup
    for index, column in enumerate(columns):
        justify: JustifyMethod = "right" if column.startswith(">") else "left"
        whole = index == 0 or column.startswith(">")
        least = max((row[index].cell_len for row in cells), default=0) if whole else None
        heading = Text(column.lstrip(">"))
        table.add_column(heading, justify=justify, no_wrap=whole, min_width=least, overflow="fold")
    for row in cells:
        table.add_row(*row)
    console().print(table, crop=False)
    typer.echo()


def large(number: int) -> str:
    """Write a count so that a person can read it: digits in groups, and a power of ten beyond twelve of them."""
    return f"{number:,}" if number < 10**12 else _scientific(number)


def _scientific(number: int) -> str:
    # a decimal, because counts beyond the largest float are common
    return f"{Decimal(number):.2e}".replace("+", "")
