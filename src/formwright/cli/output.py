"""How commands talk: facts as JSON or as tables on standard output, notes on standard error.

Nothing else in `cli` prints: names, labels, reasons and paths come from files and databases of others, and what they
hold must not command the terminal. `echo`, `note`, tables and `cell` show it escaped; the lint refuses `print` here.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from textwrap import fill, indent
from typing import TYPE_CHECKING, Any

import typer

from formwright.core.errors import IllegalInput
from formwright.core.files import write_whole
from formwright.core.text import escaped, printable

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod
    from rich.text import Text

    from formwright.arch.card import Card

_MOST = 10_000  # columns that a row with a folder may have
_BETWEEN = 2  # columns of the terminal that a table leaves free between two of its own


def echo(text: str = "") -> None:
    """Print a line on standard output, with whatever could command the terminal escaped."""
    typer.echo(printable(text))


def note(text: str) -> None:
    """Print a line on standard error, with whatever could command the terminal escaped."""
    typer.echo(printable(text), err=True)


def cell(text: str, style: str = "") -> "Text":
    """Give plain text for a live or printed table: never markup, never a command to the terminal."""
    from rich.text import Text

    return Text(printable(text), style=style)


def print_drawing(card: "Card") -> None:
    """Draw a design, in colour where the terminal has some."""
    from formwright.report.terminal import draw_text

    screen = console()
    typer.echo(draw_text(card, colour=screen.is_terminal, columns=min(screen.width, 100)))


def print_json(data: Any) -> None:
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
    if escaped(text) != text:  # JSON lets some of what commands a terminal stand as it is
        return json.dumps(data, indent=2).replace("\x7f", "\\u007f")
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # letters that the terminal does not know, or half a letter in a file's name
        return json.dumps(data, indent=2)
    return text


def console() -> "Console":
    """Give the terminal, or a plain stream when output goes elsewhere."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False)


def print_entries(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table as `print_table` does; where the terminal is too narrow for its words, one entry below the other.

    A column that is narrower than a word of it would cut the word.
    """
    headings = [column.lstrip(">") for column in columns]
    measures = [len if column.startswith(">") or not place else _longest_word for place, column in enumerate(columns)]
    widths = [max(map(measures[place], cells)) for place, cells in enumerate(zip(headings, *rows, strict=True))]
    if sum(widths) + _BETWEEN * len(widths) <= console().width:
        print_table(columns, rows, widths)
        return
    for name, *values in rows:
        echo(name)
        for heading, value in zip(headings[1:], values, strict=True):
            if value:
                echo(_entry(heading, value, max(map(len, headings[1:]))))
        echo()


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def _entry(heading: str, value: str, room: int) -> str:
    first = f"  {heading:<{room}}  "
    width = max(console().width, len(first) + _longest_word(value))
    return fill(value, width, initial_indent=first, subsequent_indent=" " * len(first), break_on_hyphens=False)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int] | None = None) -> None:
    """Print rows under headings; a column whose heading starts with `>` holds numbers and stands to the right.

    Where the terminal is narrow, words are wrapped; names and numbers are never cut. `widths` are the least of columns.
    Rows with a `folder` at their end, which is to be copied, are as long as they need to be.
    """
    from rich.box import SIMPLE_HEAD
    from rich.measure import Measurement
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    cells = [[cell(text) for text in row] for row in rows]
    for index, column in enumerate(columns):
        justify: JustifyMethod = "right" if column.startswith(">") else "left"
        whole = index == 0 or column.startswith(">")
        least = None if widths is None else widths[index]
        heading = cell(column.lstrip(">"))
        if whole:
            least = max(heading.cell_len, *(row[index].cell_len for row in cells), 0)
        table.add_column(heading, justify=justify, no_wrap=whole, min_width=least, overflow="fold")
    for row in cells:
        table.add_row(*row)
    screen = console()
    if columns[-1] == "folder":
        needed = Measurement.get(screen, screen.options.update(max_width=_MOST), table).maximum
        screen.width = max(needed, screen.width)
    screen.print(table, crop=False)
    echo()


def write_file(path: Path, content: str) -> None:
    """Write a file that the user named, all of it or nothing."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise IllegalInput(f"cannot write {path}: {error.strerror or error}") from None


def large(number: int) -> str:
    """Write a count so that a person can read it: digits in groups, and a power of ten beyond twelve of them."""
    # a decimal, because counts beyond the largest float are common
    return f"{number:,}" if number < 10**12 else f"{Decimal(number):.2e}".replace("+", "")
