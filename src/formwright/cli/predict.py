"""`formwright predict`: predictions of a delivered model for the rows of a table."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from formwright.cli.options import DATA, OUTPUT, ModelFolder, argument, columns_of, flag
from formwright.cli.output import echo, note, print_json, write_file
from formwright.core.errors import IllegalInput

_STDIN = "-"
_OUT = "CSV, TSV or JSON Lines file to write (default: standard output)."
_FILE = (
    "A table (- reads standard input), a picture, a WAV file, a file of series, an IDX file of pictures, or a folder "
    "of such files."
)
_TEXT = "Text columns, separated by commas (default: those the model was trained on)."


def predict(
    folder: ModelFolder,
    file: Annotated[str, argument(_FILE, "FILE")],
    out: Annotated[Path | None, flag(_OUT, OUTPUT)] = None,
    text: Annotated[str, flag(_TEXT, DATA)] = "",
    as_json: Annotated[bool, flag("Print the rows as one JSON object.", OUTPUT, "--json")] = False,
) -> None:
    """Predict the label, number or answer of every row of a table: adds columns `prediction` and `probability`.

    For a multi-label model, `prediction` is a list of labels, and `probability` has one for every label. A model of
    tags gives a tag for each word; it also reads and writes column files (.conll).
    """
    from formwright.evaluate.loaded_model import input_columns, load_model, predict_table
    from formwright.tasks.kind import KINDS
    from formwright.tasks.tables import form_of, format_of

    if out is not None and file != _STDIN and os.path.exists(file) and out.exists() and out.samefile(file):
        raise IllegalInput(f"--out {out} is the file that is read; name another")
    loaded = load_model(folder)
    kind = KINDS.get(loaded.kind)
    form = None if out is None else format_of(out) or kind.form or form_of(out)
    with _readable(file) as path:
        table = kind.read(path, input_columns(loaded, columns_of(text)))
        form = form or format_of(path) or kind.form or "csv"
    rows, names = predict_table(loaded, table)
    if out is not None:
        write_file(out, kind.write(rows, names, form))
    if as_json:
        print_json({"folder": str(folder), "kind": loaded.kind, "out": None if out is None else str(out), "rows": rows})
    elif out is None:
        _show(kind.write(rows, names, form))
    else:
        note(f"wrote {len(rows):,} rows to {out}")


@contextmanager
def _readable(file: str) -> Iterator[Path]:
    """Give the file to read; standard input is read as JSON if it begins like JSON, else as CSV."""
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


def _show(content: str) -> None:
    """Print a table: control characters are escaped on a terminal, and left as they are in a pipe."""
    if sys.stdout.isatty():
        for line in content.splitlines():
            echo(line)
    else:
        sys.stdout.write(content)
