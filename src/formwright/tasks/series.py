"""Tasks of series: files of the UCR archive (`.ts`, `.tsv`), and tables with one series, or one step of it, a row."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.core.remember import remember, remembers
from formwright.tasks.frames import FrameRows
from formwright.tasks.labelled_folders import classes_task, has_labelled_files
from formwright.tasks.recordings import RECORDINGS, fsdd_task, has_fsdd_names, read_wav, recordings_task
from formwright.tasks.rows import Splits
from formwright.tasks.splitting import divided
from formwright.tasks.tables import Table, WholeTable, column_names, missing, read_table, read_whole_table, written
from formwright.tasks.task import Task
from formwright.tasks.text_files import Faults, ending, file_digests, read_lines, reading
from formwright.tasks.user_tables import table_files

_ENDS = (".ts", ".tsv", ".txt")  # of the archive, the first that is there
_ARCHIVE = re.compile(r".+_(train|test)(\.ts|\.tsv|\.txt)(\.gz)?", re.IGNORECASE)
_SEPARATOR = re.compile(r"[^\S\t]*[\t,][^\S\t]*|\s+")  # in a table of the archive; between two tabs is an empty cell

Values = NDArray[np.float32]  # (steps, dimensions)


@dataclass(frozen=True)
class LabelledSeries:
    """Series of a file and the name of the label of each; `labels` are all names, if the file lists them.

    `ids` name the series of a table of steps.
    """

    series: list[Values]
    names: list[str]
    labels: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()


@remembers
@dataclass(frozen=True)
class SeriesFiles:
    """Read the splits from files; `label` and `by` are columns of tables, and `digests` those of the files' bytes."""

    files: tuple[tuple[str, Path], ...]
    label: str
    by: str
    official_dev: bool
    digests: tuple[str, ...]

    def __call__(self) -> Splits[FrameRows]:
        """Return all rows, read on the first call in a process."""
        return _found(self)[0]


def has_frames(path: Path) -> str:
    """Say why a path seems to have recordings or series; empty if it does not."""
    if _is_ts(path) or (path.is_dir() and _archive_files(path)):
        return "it has series of the UCR archive"
    return "the folder has WAV files" if has_labelled_files(path, RECORDINGS) or has_fsdd_names(path) else ""


def own_frames(
    path: Path | str, text: Sequence[str] = (), label: str = "", official_dev: bool = False, series: str = ""
) -> Task:
    """Make a task of a user's own recordings or series (see `recordings_task` and `series_task`)."""
    spoken_digits = has_fsdd_names(Path(path))
    recordings = spoken_digits or has_labelled_files(Path(path), RECORDINGS)
    if recordings and (text or label or series):
        raise IllegalInput(f"{path} has recordings and no columns; leave out --text, --label and --series")
    if text:
        raise IllegalInput(f"{path} has numbers; leave out --text, --label names the column of labels")
    if spoken_digits:
        return fsdd_task(str(path), Path(path), official_dev)
    if recordings:
        return recordings_task(str(path), official_dev)
    return series_task(str(path), label, series, official_dev)


def series_task(path: str, label: str = "", by: str = "", official_dev: bool = False) -> Task:
    """Make a task of series, of which each has one label.

    A folder of the UCR archive has files `NAME_TRAIN.ts` and `NAME_TEST.ts`, or `.tsv`, plain or gzip. A table has a
    row for each series, with its numbers in all columns but the one called `label`; a row may end with empty cells.
    With `by`, the column that names the series, a row is one step of a series, and its numbers are dimensions.
    """
    place = Path(path).absolute()
    files = _archive_files(place) if place.is_dir() else ((("train", place),) if _is_ts(place) else ())
    if files and (label or by):
        raise IllegalInput(f"{path} has series of the UCR archive and no columns; leave out --label and --series")
    files = files or table_files(place, (label or "label",))
    source = SeriesFiles(files, label or "label", by, official_dev, file_digests(file for _, file in files))
    about = f"series of {', '.join(file.name for _, file in files)}"
    return classes_task(path, "frame-classification", source, _found(source)[1], about)


@remember
def _found(source: SeriesFiles) -> tuple[Splits[FrameRows], tuple[str, ...]]:
    read = {split: _read(path, source.label, source.by) for split, path in source.files}
    given = read["train"].labels
    labels = given if set(read["train"].names) <= set(given) else tuple(sorted(set(read["train"].names), key=_order))
    if len(seen := set(read["train"].names)) < 2:
        raise IllegalInput(
            f"all training series of {source.files[0][1]} have the label {min(seen)!r}; expected at least two labels"
        )
    rows = {}
    for split, path in source.files:
        if strange := sorted(set(read[split].names) - set(labels)):
            raise IllegalInput(
                f"{path} has the label {strange[0]!r}, which no training row has; add training rows of it, or remove it"
            )
        numbers = tuple(range(len(read[split].names)))
        places = [labels.index(name) for name in read[split].names]
        rows[split] = FrameRows.of(read[split].series, places, numbers=numbers, source=str(path))
    if len(sizes := {part.values.shape[1] for part in rows.values()}) > 1:
        raise IllegalInput(
            f"the series of {source.files[0][1].parent} have {sizes} numbers a step; expected one number"
        )
    return divided(rows, source.official_dev, by_class=True), labels


def _order(name: str) -> tuple[float, str]:
    """Sort numbers by value, and other names behind them."""
    try:
        return float(name), name
    except ValueError:
        return math.inf, name


def _read(path: Path, label: str, by: str) -> LabelledSeries:
    if _is_ts(path):
        return read_ts(path)
    if _ARCHIVE.fullmatch(path.name):
        return _read_archive_table(path)
    return read_long_table(path, label, by) if by else read_wide_table(path, label)


def read_ts(path: Path) -> LabelledSeries:
    """Read a `.ts` file: a header of `@` lines, then a case a line: dimensions and the label separated by colons."""
    faults, found = Faults(str(path)), LabelledSeries([], [])
    header: dict[str, list[str]] = {}
    for number, line in enumerate(read_lines(path, faults), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if text.startswith("@"):
            name, *words = text[1:].split() or [""]
            header[name.lower()] = words
            if name.lower() == "data" and not _is_true(header, "classlabel"):
                raise IllegalInput(f"{path} has no labels: expected a line @classLabel true with their names")
            continue
        if "data" not in header:
            faults.stop(number, "expected a header of lines that begin with @, the last of them @data")
        if _is_true(header, "timestamps"):
            faults.stop(number, "series with time stamps are not read; expected numbers alone")
        *parts, label = text.split(":")
        columns = [_numbers(part.split(","), number, faults) for part in parts]
        if len({len(column) for column in columns}) != 1:
            faults.add(number, f"{len(columns)} dimensions of {sorted({len(one) for one in columns})} steps")
            continue
        if found.series and (first := found.series[0].shape[1]) != len(columns):
            faults.add(number, f"{len(columns)} dimensions; the first series has {first}")
            continue
        found.series.append(np.stack(columns, axis=1))
        found.names.append(label.strip())
    faults.end()
    if not found.names:
        raise IllegalInput(f"{path} has no series; expected a header, @data, and a series a line")
    return LabelledSeries(found.series, found.names, tuple(header["classlabel"][1:]))


def _is_true(header: Mapping[str, Sequence[str]], name: str) -> bool:
    """Tell whether a line of a header says that something is so; without a word it does not."""
    return [word.lower() for word in header.get(name, ())[:1]] == ["true"]


def _read_archive_table(path: Path) -> LabelledSeries:
    """Read a table of the archive: without a header, the label first, separated by tabs, commas or spaces."""
    faults, found = Faults(str(path)), LabelledSeries([], [])
    for number, line in enumerate(read_lines(path, faults), start=1):
        if text := line.strip():
            cells = _SEPARATOR.split(text)
            found.series.append(_numbers(_without_end(cells[1:]), number, faults)[:, None])
            found.names.append(_plain_label(cells[0]))
    faults.end()
    if not found.names:
        raise IllegalInput(f"{path} has no series; expected a label and numbers a line")
    return found


def _plain_label(text: str) -> str:
    """Write a label that is a whole number as one: the archive has 1.0000000e+00 too."""
    try:
        return str(int(float(text))) if float(text).is_integer() else text
    except ValueError:
        return text


def read_wide_table(path: Path, label: str) -> LabelledSeries:
    """Read a table with a series a row."""
    table, faults = _table(path, label), Faults(str(path))
    found = zip(table.rows, table.lines, strict=True)
    series = [_numbers(_without_end(row[1:]), line, faults)[:, None] for row, line in found]
    faults.end()
    return LabelledSeries(series, [row[0] for row in table.rows])


def read_long_table(path: Path, label: str, by: str) -> LabelledSeries:
    """Read a table with a step a row; the rows of a series keep their order, and have one label."""
    table = _table(path, label, by)  # without labels, the names of the series stand in for them
    faults, steps, names = Faults(str(path)), dict[str, list[NDArray[np.float32]]](), dict[str, str]()
    for (name, series, *cells), line in zip(table.rows, table.lines, strict=True):
        if names.setdefault(series, name) != name:
            faults.add(line, f"the series {series!r} has the label {name!r} here, and {names[series]!r} before")
        steps.setdefault(series, []).append(_numbers(cells, line, faults))
    faults.end()
    found = [np.stack(one) for one in steps.values()]
    return LabelledSeries(found, [names[series] for series in steps], ids=tuple(steps))


def _table(path: Path, *first: str) -> Table:
    """Read a table with some columns first, then all others in their order."""
    names = column_names(path, first)
    for name in first:
        if name not in names:
            raise IllegalInput(f"{path}: {missing(name, names)}")
    others = [name for name in names if name not in first]
    if not others:
        raise IllegalInput(f"{path} has no columns of numbers other than {', '.join(first)}")
    return read_table(path, [*first, *others])


def _without_end(cells: Sequence[str]) -> list[str]:
    """Leave out empty cells at the end, which fill up shorter series."""
    kept = list(cells)
    while kept and kept[-1].strip().lower() in ("", "nan"):
        kept.pop()
    return kept


def _numbers(cells: Iterable[str], line: int, faults: Faults) -> NDArray[np.float32]:
    texts = list(cells)
    try:
        found = np.array(texts, np.float64)
    except ValueError:
        wrong = next((text for text in texts if not _is_number(text)), "")
        faults.add(line, f"{wrong!r} is not a number; fill in missing values")
        return np.zeros(1, np.float32)
    if not len(found) or not np.isfinite(found).all():
        faults.add(line, "no numbers" if not len(found) else "NaN or infinity; fill in missing values")
        return np.zeros(1, np.float32)
    return found.astype(np.float32)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_ts(path: Path) -> bool:
    return ending(path) == ".ts" and not path.is_dir()


def _archive_files(folder: Path) -> tuple[tuple[str, Path], ...]:
    """Return the training and test files of the archive in a folder, none without training series."""
    found = _archive_splits(folder)
    return tuple(sorted(found.items(), key=lambda one: one[0] != "train")) if "train" in found else ()


def _archive_splits(folder: Path) -> dict[str, Path]:
    """Return the files of the archive in a folder, by `train` and `test`."""
    with reading(folder):
        names = [path for path in sorted(folder.iterdir()) if _ARCHIVE.fullmatch(path.name)]
    found: dict[str, Path] = {}
    for path in sorted(names, key=_preference):
        split = _ARCHIVE.fullmatch(path.name).group(1).lower()  # type: ignore[union-attr]
        found.setdefault(split, path)
    return found


def _preference(path: Path) -> int:
    return _ENDS.index(ending(path))


def read_frames_files(path: Path, columns: Sequence[str] = ()) -> WholeTable:
    """Read series without labels, or recordings: a WAV file or a folder of them, or a file as for training.

    Of a folder of the UCR archive, the test series are read. `columns` are those of the labels, which may be missing
    here, and of the names of the series, if a row is one step.
    """
    label, by = (*columns, "", "")[:2]
    if path.is_dir() and (splits := _archive_splits(path)):
        if "test" not in splits:
            raise IllegalInput(f"{path} has no test series; to read its training series, name {splits['train'].name}")
        path = splits["test"]
    if path.is_dir() or path.suffix.lower() in RECORDINGS:
        return _recordings(path)
    if _is_ts(path) or _ARCHIVE.fullmatch(path.name):
        found = _read(path, "", "")
        return _whole("series", range(len(found.names)), found.series)
    names = column_names(path, [name for name in (label, by) if name])
    own = [name for name in (label, by) if name in names]
    if by:
        found = read_long_table(path, label, by) if label in names else read_long_table(path, by, by)
        return _whole(by, found.ids, found.series)
    table = read_whole_table(path, own[:1] or names[:1])
    cells = [[written(row[name]) for name in names if name not in own] for row in table.rows]
    faults = Faults(str(path), unit="row")
    series = [_numbers(_without_end(row), place, faults)[:, None] for place, row in enumerate(cells)]
    faults.end()
    return WholeTable(table.names, table.rows, tuple((one, 0) for one in series))


def _recordings(path: Path) -> WholeTable:
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in RECORDINGS) if path.is_dir() else [path]
    if not files:
        raise IllegalInput(
            f"no recordings or series in {path}: expected files that end in {', '.join(RECORDINGS)}, or NAME_TEST.ts "
            "or NAME_TEST.tsv of the UCR archive"
        )
    names = [str(file.relative_to(path)) if path.is_dir() else str(file) for file in files]
    read = [read_wav(file) for file in files]
    texts = tuple((samples[:, None], rate) for samples, rate in read)
    return WholeTable(("file",), tuple({"file": name} for name in names), texts)


def _whole(name: str, places: Iterable[Any], series: Sequence[Values]) -> WholeTable:
    return WholeTable((name,), tuple({name: place} for place in places), tuple((one, 0) for one in series))
