"""Tables to be answered: read with all their columns, and written with more."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.tasks.json_rows import json_objects
from formwright.tasks.lines import Faults
from formwright.tasks.tables import FORMATS, column_names, format_of, read_table

Cells = Mapping[str, Any]


@dataclass(frozen=True)
class WholeTable:
    """All columns of a table: the rows as they came, and the columns of text of each."""

    names: tuple[str, ...]
    rows: tuple[Cells, ...]
    texts: tuple[tuple[str, ...], ...]


def read_whole_table(path: Path, text: Sequence[str]) -> WholeTable:
    """Read a CSV, TSV or JSON file with all its columns; `text` names those that must be there and hold text."""
    texts = read_table(path, text).rows
    names = column_names(path, text)
    if format_of(path) == "jsonl":
        return WholeTable(names, tuple(entry for _, entry in json_objects(path, Faults(str(path)))), texts)
    whole = read_table(path, names).rows
    return WholeTable(names, tuple(dict(zip(names, row, strict=True)) for row in whole), texts)


def written_table(rows: Sequence[Cells], names: Sequence[str], form: str) -> str:
    """Write rows as `csv`, `tsv` or `jsonl`; None is an empty field."""
    if form == "jsonl":
        return "".join(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows)
    cells = [[_cell(row.get(name)) for name in names] for row in rows]
    if form == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([names, *cells])
        return text.getvalue()
    for number, row in enumerate(cells):
        if any(mark in cell for cell in row for mark in "\t\r\n"):
            raise IllegalInput(f"row {number} holds a tab or the end of a line, which a TSV cannot; write a .csv file")
    return "".join("\t".join(row) + "\n" for row in [list(names), *cells])


def form_of(path: Path) -> str:
    """Tell by the end of a file's name how to write it."""
    form = format_of(path)
    if form is None or path.name.endswith(".gz"):
        raise IllegalInput(f"cannot tell how to write {path}: expected a name that ends in {', '.join(FORMATS)}")
    return form


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
