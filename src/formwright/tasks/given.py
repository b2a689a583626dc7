"""Tasks that are given as Python objects: pandas data frames and Hugging Face datasets, kept as a file of the run."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.core.files import write_file
from formwright.tasks.text_files import reading

FILE = "data.jsonl"


def rows_of(given: Any) -> list[dict[str, Any]]:
    """List the rows of a data frame, a dataset, or a list of mappings."""
    if isinstance(given, Mapping) and hasattr(given, "column_names"):  # a Hugging Face DatasetDict
        raise IllegalInput(f"give one split of the dataset, such as dataset['train'] (it has {', '.join(given)})")
    if hasattr(given, "to_dict") and hasattr(given, "columns"):  # a pandas DataFrame
        names = [str(name) for name in given.columns]
        if twice := [name for name in names if names.count(name) > 1]:
            raise IllegalInput(f"the DataFrame has several columns called {twice[0]!r}: rename or drop one")
        return [dict(row) for row in given.to_dict("records")]
    if hasattr(given, "features") and hasattr(given, "column_names"):  # a Hugging Face Dataset
        kinds = {name: getattr(feature, "names", None) for name, feature in given.features.items()}
        return [{name: _named(value, kinds[name]) for name, value in row.items()} for row in given]
    if isinstance(given, Sequence) and all(isinstance(row, dict) for row in given):
        return [dict(row) for row in given]
    raise IllegalInput(
        f"give a name, a file, a pandas DataFrame, a Hugging Face Dataset or a list of rows, not {type(given).__name__}"
    )


@contextmanager
def rows_file(rows: Sequence[dict[str, Any]], folder: Path, *, force: bool = False) -> Iterator[Path]:
    """Write rows as JSON lines next to the folder of a run, so that the run can be resumed from them.

    The rows that an earlier run began with are not replaced by others, unless with `force`. If the run is refused
    before it begins, which happens within the block, the file is as it was before.
    """
    if not rows:
        raise IllegalInput("the task that was given has no rows")
    if not folder.name or "\0" in str(folder):
        raise IllegalInput(f"cannot write the rows next to the folder {str(folder)!r}: name another one with out=")
    path, record = folder.with_name(f"{folder.name}-{FILE}"), folder / "run.json"
    content = "".join(f"{_line(row)}\n" for row in rows).encode()
    begun = _written_at(record)
    with reading(path):
        before = path.read_bytes() if path.is_file() else None
    if before not in (None, content) and begun is not None and not force:
        raise IllegalInput(
            f"the rows that were given have changed since the run in {folder} began with those in {path}: give the "
            "same rows to resume it, another folder with out=, or force=True"
        )
    if before != content:
        write_file(path, content)
    try:
        yield path
    except BaseException:
        if _written_at(record) == begun:  # the run did not begin
            if before is not None:
                write_file(path, before)
            elif begun is None:
                path.unlink()
        raise


def _written_at(path: Path) -> int | None:
    return path.stat().st_mtime_ns if path.is_file() else None


def _line(row: Mapping[str, Any]) -> str:
    """Write a row as JSON; name the column that cannot be written."""
    cells = []
    for name, value in row.items():
        try:
            cells.append(f"{json.dumps(str(name))}: {json.dumps(_plain(value))}")
        except (TypeError, ValueError):
            detail = f"the column {name!r} holds {type(value).__name__}"
            raise IllegalInput(f"{detail}: a task in memory has columns of text and numbers") from None
    return "{" + ", ".join(cells) + "}"


def _named(value: Any, names: list[str] | None) -> Any:
    return names[value] if names is not None and isinstance(value, int) and 0 <= value < len(names) else value


def _plain(value: Any) -> Any:
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:  # a number of numpy
        value = value.item()
    if hasattr(value, "isoformat"):  # a date
        return value.isoformat()
    return None if isinstance(value, float) and math.isnan(value) else value
