"""`formwright predict`: answer the rows of a table with a delivered model."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formwright.cli import panels
from formwright.cli.options import ModelFolder
from formwright.cli.output import echo, note, print_json
from formwright.cli.task_options import columns_of
from formwright.core.errors import IllegalInput
from formwright.core.files import write_whole

if TYPE_CHECKING:
    from formwright.evaluate.loaded_model import LoadedModel

_STDIN = "-"
PREDICTION, PROBABILITY = "prediction", "probability"


def predict(
    folder: ModelFolder,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A CSV, TSV or JSON file with the rows; - reads standard input.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="CSV, TSV or JSON Lines file to write (default: standard output).", rich_help_panel=panels.OUTPUT
        ),
    ] = None,
    text: Annotated[
        str,
        typer.Option(
            help="Text columns, separated by commas (default: those the model was trained on).",
            rich_help_panel=panels.DATA,
        ),
    ] = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the rows as one JSON object.", rich_help_panel=panels.OUTPUT)
    ] = False,
) -> None:
    """Answer every row of a table: its columns, then `prediction` and, where there is one, `probability`.

    Of a multi-label model, `prediction` is a list of labels, and `probability` has one for every label.
    """
    from formwright.evaluate.loaded_model import load_model
    from formwright.evaluate.predict import predict as answer
    from formwright.tasks.predicted_tables import form_of, read_whole_table, written_table
    from formwright.tasks.tables import format_of

    if out is not None and file != _STDIN and os.path.exists(file) and out.exists() and out.samefile(file):
        raise IllegalInput(f"--out {out} is the file that is read; name another")
    form = None if out is None else form_of(out)
    loaded = load_model(folder)
    with _readable(file) as path:
        table = read_whole_table(path, _columns(loaded, text))
        form = form or format_of(path) or "csv"
    taken = [name for name in (PREDICTION, PROBABILITY) if name in table.names]
    if taken:
        raise IllegalInput(f"{file} has a column called {taken[0]!r} already; rename it first")
    found = answer(loaded, table.texts)
    added = [PREDICTION, *([PROBABILITY] if any(one.probability is not None for one in found) else [])]
    values = [dict(zip(added, (one.value, one.probability), strict=False)) for one in found]
    rows = [{**row, **more} for row, more in zip(table.rows, values, strict=True)]
    if out is not None:
        _write(out, written_table(rows, [*table.names, *added], form))
    if as_json:
        print_json({"folder": str(folder), "kind": loaded.kind, "out": None if out is None else str(out), "rows": rows})
    elif out is None:
        _show(written_table(rows, [*table.names, *added], form))
    else:
        note(f"wrote {len(rows):,} rows to {out}")


def _columns(loaded: "LoadedModel", text: str) -> tuple[str, ...]:
    """Name the columns of text: those that are given, or those that the model was trained on."""
    given = columns_of(text)
    recorded: Any = (loaded.evaluation or {}).get("columns")
    columns = given or (tuple(map(str, recorded)) if isinstance(recorded, list) else ())
    if not 1 <= len(columns) <= 2:
        raise IllegalInput("say which one or two columns hold the text: --text COLUMN or --text FIRST,SECOND")
    if recorded and len(recorded) != len(columns):
        learnt = f"{len(recorded)} text column{'s' if len(recorded) > 1 else ''} ({', '.join(recorded)})"
        raise IllegalInput(f"the model was trained on {learnt}; --text names {len(columns)}: {', '.join(columns)}")
    return columns


@contextmanager
def _readable(file: str) -> Iterator[Path]:
    """Give the file to read; standard input becomes one, of JSON where it begins as such and else of CSV."""
    if file != _STDIN:
        yield Path(file)
        return
    content = sys.stdin.buffer.read()
    suffix = ".json" if content.lstrip()[:1] in (b"{", b"[") else ".csv"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"standard-input{suffix}"
        path.write_bytes(content)
        try:
            yield path
        except IllegalInput as error:
            raise IllegalInput(str(error).replace(str(path), "standard input")) from None


def _write(out: Path, content: str) -> None:
    try:
        write_whole(out, content)
    except OSError as error:
        raise IllegalInput(f"cannot write {out}: {error.strerror or error}") from None


def _show(content: str) -> None:
    """Print a table: to a terminal with whatever could command it escaped, to a pipe as it is."""
    if sys.stdout.isatty():
        for line in content.splitlines():
            echo(line)
    else:
        sys.stdout.write(content)
