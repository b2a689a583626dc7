"""Read and write CSV, TSV and JSON tables, and say of every bad row where it is and what was expected."""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from formwright.core.errors import IllegalInput, nearest_hint
from formwright.tasks.text_files import Faults, ending, json_kind, json_objects, read_lines

FORMATS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
_SEPARATORS = (",", ";", "\t", "|")  # of a CSV, the first that fits
HALF_LETTER = re.compile("[\ud800-\udfff]")  # JSON can write what no text may hold
_BROKEN = 0.01  # share of broken rows beyond which a file is not a known one with known flaws

Row = tuple[int, list[str]]  # the line it starts on, and its fields


@dataclass(frozen=True)
class Table:
    """Some columns of a source, as text, and the line on which each row starts."""

    where: str
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    left_out: int = 0
    unit: str = "line"

    def __len__(self) -> int:
        return len(self.rows)


def format_of(path: Path) -> str | None:
    """Return the format of a table by the end of its name, `.gz` aside; None where it is none of ours."""
    return FORMATS.get(ending(path))


def read_table(
    path: Path, columns: Sequence[str], header: Sequence[str] = (), broken: bool = False, lists: Sequence[str] = ()
) -> Table:
    """Read the named columns of a table.

    Fields of a TSV are never quoted. Fields of a CSV may be quoted, and are separated by commas, semicolons, tabs or
    vertical bars: whichever yields the named columns in the header, or else the most columns. A JSON Lines file has one
    object per line; a `.json` file may also be one array of objects; values other than text are kept as JSON. Files
    without a header need `header`. Blank lines are skipped. With `broken`, a few rows with the wrong number of fields
    are skipped and counted. Columns among `lists` may hold JSON arrays.
    """
    faults = Faults(str(path))
    kind = format_of(path)
    if kind is None:
        raise IllegalInput(f"cannot tell the format of {path}: expected a name in {', '.join(FORMATS)}, or with .gz")
    if kind == "jsonl":
        found, left_out = _objects(path, columns, lists, faults), 0
    else:
        found, left_out = _fields(path, columns, header, broken, faults)
    if not found and not faults.found:
        raise IllegalInput(f"{path} has no rows; expected a table with the columns {', '.join(columns)}")
    if left_out > _BROKEN * (len(found) + left_out):
        faults.add(1, f"{left_out:,} of {len(found) + left_out:,} rows have too few or too many fields")
    faults.end()
    return Table(str(path), tuple(row for _, row in found), tuple(line for line, _ in found), left_out)


def column_names(path: Path, wanted: Sequence[str] = ()) -> tuple[str, ...]:
    """List the columns of a table: its headings, or the keys of the first JSON object.

    `wanted` are columns that are looked for, by which the separator of a CSV is found.
    """
    faults = Faults(str(path))
    if format_of(path) == "jsonl":
        return tuple(next(json_objects(path, faults), (0, {}))[1])
    return tuple(next(_split(path, wanted, faults), (0, []))[1])


def _fields(
    path: Path, columns: Sequence[str], header: Sequence[str], broken: bool, faults: Faults
) -> tuple[list[tuple[int, tuple[str, ...]]], int]:
    rows = _split(path, columns, faults)
    names = header or next(rows, (1, []))[1]
    if not names:
        raise IllegalInput(f"{path} is empty; expected a table with the columns {', '.join(columns)}")
    for column in columns:
        if names.count(column) > 1:
            faults.add(1, f"{names.count(column)} columns are called {column!r}; expected one")
        elif column not in names:
            faults.add(1, missing(column, names))
    faults.end()
    places, found, left_out = [names.index(column) for column in columns], [], 0
    for line, fields in rows:
        if len(fields) == len(names):
            found.append((line, tuple(fields[place] for place in places)))
        elif broken:
            left_out += 1
        else:
            count = f"{len(fields)} field{'' if len(fields) == 1 else 's'}"
            faults.add(line, f"{count}; expected {len(names)}: {', '.join(names)}")
    return found, left_out


def missing(column: str, names: Sequence[str]) -> str:
    """Return the message for a missing column, with the nearest and all column names."""
    hint = nearest_hint(column, names)
    some = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"no column called {column!r}.{hint} The columns are: {some or 'none'}"


def _split(path: Path, columns: Sequence[str], faults: Faults) -> Iterator[Row]:
    if format_of(path) == "tsv":
        for number, line in enumerate(read_lines(path, faults), start=1):
            text = line.rstrip("\r\n")
            if text.strip():
                yield number, text.split("\t")
        return
    lines = enumerate(read_lines(path, faults), start=1)
    start, headings = next(((number, line) for number, line in lines if line.strip()), (1, ""))
    rest = chain([headings], (line for _, line in lines))
    reader, before = csv.reader(rest, strict=True, delimiter=_separator(headings, columns)), start - 1
    try:
        for fields in reader:
            if fields:
                yield start, fields
            start = before + reader.line_num + 1
    except csv.Error as error:
        faults.stop(start, _explain(str(error)))


def _separator(headings: str, columns: Sequence[str]) -> str:
    """Find what separates the fields of a CSV, by the line of its headings."""

    def fitness(separator: str) -> tuple[int, int]:
        try:
            names = next(csv.reader([headings], delimiter=separator), [])
        except csv.Error:  # which is reported when the table is read
            names = []
        return sum(column in names for column in columns), len(names)

    return max(_SEPARATORS, key=fitness)


def _explain(error: str) -> str:
    if "limit" in error:
        limit = csv.field_size_limit()
        return f"a field longer than {limit:,} letters; is a quotation mark left open? JSON Lines has no such limit"
    if "unexpected end" in error:
        return "a quotation mark is opened here and never closed"
    return f"not CSV: {error}"


def _objects(
    path: Path, columns: Sequence[str], lists: Sequence[str], faults: Faults
) -> list[tuple[int, tuple[str, ...]]]:
    found = []
    for line, entry in json_objects(path, faults):
        wrong = [fault for column in columns if (fault := _fault(entry, column, column in lists))]
        for fault in wrong:
            faults.add(line, fault)
        if not wrong:
            found.append((line, tuple(written(entry[column]) for column in columns)))
    return found


def _fault(entry: dict[str, Any], column: str, may_be_list: bool) -> str | None:
    if column not in entry:
        return missing(column, list(entry))
    found = entry[column]
    for value in found if may_be_list and isinstance(found, list) else [found]:
        if value is None or isinstance(value, list | dict):
            return f"{column!r} is a JSON {json_kind(value)}; expected text or a number"
        if isinstance(value, str) and HALF_LETTER.search(value):
            return f"{column!r} holds half a letter (a lone surrogate); expected text"
    return None


def written(value: Any) -> str:
    """Return a value as a field: text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


Cells = Mapping[str, Any]


@dataclass(frozen=True)
class WholeTable:
    """All columns of a table: the rows as they came, and the columns of text of each, or what else a model reads."""

    names: tuple[str, ...]
    rows: tuple[Cells, ...]
    texts: tuple[Any, ...]


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
    cells = [["" if row.get(name) is None else written(row[name]) for name in names] for row in rows]
    if form == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([names, *cells])
        return text.getvalue()
    for number, row in enumerate(cells):
        if any(mark in cell for cell in row for mark in "\t\r\n"):
            raise IllegalInput(f"row {number} holds a tab or the end of a line, which a TSV cannot; write a .csv file")
    return "".join("\t".join(row) + "\n" for row in [list(names), *cells])


def form_of(path: Path) -> str:
    """Return by the end of a file's name how to write it."""
    form = format_of(path)
    if form is None or path.suffix.lower() == ".gz":
        raise IllegalInput(f"cannot tell how to write {path}: expected a name that ends in {', '.join(FORMATS)}")
    return form
