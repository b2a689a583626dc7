"""Several labels of one row: in one cell, or in a column of 0 and 1 for each label."""

import json
from collections.abc import Sequence

from formwright.core.errors import IllegalInput
from formwright.tasks.lines import Faults
from formwright.tasks.tables import Table

_SEPARATORS = ("|", ";", ",")
_FLAGS = {"0": False, "0.0": False, "false": False, "no": False, "1": True, "1.0": True, "true": True, "yes": True}


def label_columns(label: str) -> tuple[str, ...]:
    """List the label columns that a text such as `toxic,insult` names."""
    return tuple(name.strip() for name in label.split(",") if name.strip())


def separator_of(cells: Sequence[str]) -> str:
    """Find what separates the labels of a column: the first of `|`, `;` and `,` that any cell without brackets has."""
    joined = "\n".join(cell for cell in cells if not is_list(cell))
    return next((letter for letter in _SEPARATORS if letter in joined), ",")


def is_list(cell: str) -> bool:
    """Say whether a cell is written as a list in brackets."""
    return cell.startswith("[") and cell.endswith("]")


def labels_in(cell: str, separator: str) -> tuple[str, ...]:
    """List the labels of a cell, each once, in their order; none where the cell is empty.

    A cell in brackets is a JSON array, or a Python list as pandas writes it; others are separated by `separator`.
    """
    names = _listed(cell) if is_list(cell) else cell.split(separator)
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))


def _listed(cell: str) -> list[str]:
    try:
        found = json.loads(cell)
    except (ValueError, RecursionError):
        return [name.strip().strip("'\"") for name in cell[1:-1].split(",")]
    return [name if isinstance(name, str) else json.dumps(name) for name in found]


def gathered(table: Table, columns: Sequence[str]) -> Table:
    """Turn the last columns of a table, one of 0 and 1 for each label, into one column of JSON arrays of labels."""
    if len(set(columns)) < len(columns):
        raise IllegalInput(f"a label column is named twice: {', '.join(columns)}")
    faults, rows = Faults(table.where, table.unit), []
    for line, row in zip(table.lines, table.rows, strict=True):
        texts, cells = row[: -len(columns)], row[-len(columns) :]
        flags = [_FLAGS.get(cell.strip().lower()) for cell in cells]
        for name, cell, flag in zip(columns, cells, flags, strict=True):
            if flag is None:
                faults.add(line, f"{cell!r} in column {name!r}; expected 0 or 1, since several label columns are named")
        names = [name for name, flag in zip(columns, flags, strict=True) if flag]
        rows.append((*texts, json.dumps(names, ensure_ascii=False)))
    faults.end()
    return Table(table.where, tuple(rows), table.lines, table.left_out, table.unit)
