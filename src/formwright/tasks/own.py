"""Tasks from a user's own tables: one file, or a folder of files for the splits."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from formwright.core.errors import IllegalInput
from formwright.core.remember import remember, remembers
from formwright.tasks.from_tables import Found, find_rows, text_task
from formwright.tasks.label_lists import label_columns
from formwright.tasks.labels import LabelKind
from formwright.tasks.rows import Splits, TextRows
from formwright.tasks.tables import FORMATS, column_names, format_of, read_table
from formwright.tasks.task import Task

_STEMS = {"train": ("train",), "validation": ("validation", "valid", "val", "dev"), "test": ("test",)}
_ENDS = ", ".join(FORMATS) + ", or these with .gz"


@remembers
@dataclass(frozen=True)
class OwnFiles:
    """Read the splits from files; `digest` is that of their bytes, so that rows and classes stay what they were."""

    files: tuple[tuple[str, Path], ...]
    text: tuple[str, ...]
    label: str
    kind: LabelKind | None
    official_dev: bool
    digest: str

    def __call__(self) -> Splits[TextRows]:
        """Return all rows, read on the first call in a process."""
        return _found(self).splits


def own_task(
    path: Path | str,
    text: tuple[str, ...] = ("sentence",),
    label: str = "label",
    kind: LabelKind | None = None,
    official_dev: bool = False,
) -> Task:
    """Make a task of a CSV, TSV or JSON file, or of a folder with a file each for train, validation and test.

    `text` names one or two columns of sentences, and `label` the column of labels, or several of 0 and 1, as in
    `toxic,insult`, one for each label that a row may have. Unless `kind` decides, labels are lists where all are in
    brackets, scores where all are numbers and some have a fraction, and names of classes otherwise. Files in a folder
    are called train, validation (or valid, val, dev) and test. A single file is divided 80/10/10 by a fixed seed,
    stratified by class; in a folder, validation and test are divided off where there is no labelled file for them.
    `official_dev` keeps a validation file whole, without a test if need be. `Task.origins` tells which rows of the
    files each split holds.
    """
    labels = label_columns(label)
    if not 1 <= len(text) <= 2 or not labels or set(labels) & set(text) or len(set(text)) < len(text):
        raise IllegalInput(
            f"expected one or two columns of text and another of labels, not {', '.join((*text, label))}"
        )
    files = _files(Path(os.path.abspath(path)), labels)
    source = OwnFiles(files, tuple(text), label, kind, official_dev, _digest(files))
    about = f"column {label} from {' and '.join(text)} of {', '.join(file.name for _, file in files)}"
    return text_task(str(path), source, _found(source), about)


@remember
def _found(source: OwnFiles) -> Found:
    if _digest(source.files) != source.digest:
        names = ", ".join(str(file) for _, file in source.files)
        raise IllegalInput(f"the task was made of files that have changed since: {names}; make the task again")
    labels = label_columns(source.label)
    columns = (*source.text, *labels)
    tables = {split: read_table(file, columns, lists=labels) for split, file in source.files}
    return find_rows(tables, source.kind, source.official_dev, labels)


def _files(path: Path, labels: tuple[str, ...]) -> tuple[tuple[str, Path], ...]:
    if not os.path.isdir(path):  # says no to a name that is too long
        if format_of(path) is None:
            raise IllegalInput(f"{path} is no folder, and no file whose name ends in {_ENDS}")
        return (("train", path),)
    found = {split: file for split, stems in _STEMS.items() if (file := _only(path, stems)) is not None}
    if "train" not in found:
        raise IllegalInput(f"no training rows in {path}: looked for a file called train with the end {_ENDS}")
    if "test" in found and (names := column_names(found["test"], labels)) and not set(labels) <= set(names):
        del found["test"]  # a test without answers, as in a competition; an empty file is refused when it is read
    return tuple(found.items())


def _only(folder: Path, stems: tuple[str, ...]) -> Path | None:
    try:
        files = sorted(folder.iterdir())
    except OSError as error:
        raise IllegalInput(f"cannot read {folder}: {error.strerror or error}") from None
    found = [file for file in files if file.name.split(".")[0].lower() in stems and format_of(file)]
    if len(found) > 1:
        raise IllegalInput(f"{folder} has {', '.join(file.name for file in found)}; expected one of them")
    return found[0] if found else None


def _digest(files: tuple[tuple[str, Path], ...]) -> str:
    digest = hashlib.sha256()
    for _, path in files:
        try:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise IllegalInput(f"cannot read {path}: {error.strerror or error}") from None
    return digest.hexdigest()
