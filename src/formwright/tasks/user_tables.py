"""Tasks from a user's own tables: one file, or a folder of files for the splits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from formwright.core.errors import IllegalInput
from formwright.core.remember import remember, remembers
from formwright.tasks.kind import KINDS
from formwright.tasks.labels import Labelling, gathered, label_columns, learn_labels
from formwright.tasks.metrics import metric
from formwright.tasks.own_files import Files, check_unchanged, split_files
from formwright.tasks.rows import Splits, TextRows
from formwright.tasks.splitting import divided
from formwright.tasks.tables import FORMATS, Table, column_names, format_of, read_table
from formwright.tasks.task import Task
from formwright.tasks.text_files import files_digest


@dataclass(frozen=True)
class Found:
    """The meaning of labels, and all rows."""

    labelling: Labelling
    splits: Splits[TextRows]


def find_rows(tables: Mapping[str, Table], kind: str | None, official_dev: bool, columns: Sequence[str] = ()) -> Found:
    """Turn tables named train and, if present, validation and test into splits.

    The last column holds the labels; with several `columns`, as many last columns do, each of 0 and 1 for one label.
    Classes are those of the training table. Missing splits are divided off: validation and test from training, or the
    test from validation, unless `official_dev` keeps validation whole.
    """
    if len(columns) > 1:
        tables = {name: gathered(table, columns) for name, table in tables.items()}
    labelling = learn_labels(tables["train"], kind, columns)
    rows = {name: labelling.rows(table) for name, table in tables.items()}
    if not any(text.strip() for row in rows["train"].texts for text in row):
        raise IllegalInput(f"all texts of {tables['train'].where} are empty; name another column of text")
    return Found(labelling, divided(rows, official_dev, by_class=KINDS.get(labelling.kind).classes))


def text_task(name: str, source: Callable[[], Splits[TextRows]], found: Found, about: str) -> Task:
    """Make the task.

    Metrics are accuracy for classes, with F1 where there are two; micro-F1, macro-F1 and subset accuracy for several
    labels; Pearson and Spearman for scores.
    """
    kind, names, guess = KINDS.get(found.labelling.kind), found.labelling.names, found.labelling.guess
    metrics, splits = kind.metrics_of(names), found.splits
    _, constant = kind.constant_answers(np.asarray(splits.train.labels), names, len(splits.validation))
    chance = metric(metrics[0]).compute(constant, splits.validation.labels)
    return Task(name, kind.name, metrics[0], source, metrics, names, chance, about, guess=guess)


_ENDS = ", ".join(FORMATS) + ", or these with .gz"


@remembers
@dataclass(frozen=True)
class OwnFiles:
    """Read the splits from files; `digest` is that of their bytes, so that a changed file is noticed."""

    files: Files
    text: tuple[str, ...]
    label: str
    kind: str | None
    official_dev: bool
    digest: str

    def __call__(self) -> Splits[TextRows]:
        """Return all rows, read on the first call in a process."""
        return _found(self).splits

    @property
    def tables(self) -> dict[str, Table]:
        """Read the columns of text, then those of labels, of each file."""
        labels = label_columns(self.label)
        return {split: read_table(file, (*self.text, *labels), lists=labels) for split, file in self.files}


def own_task(
    path: Path | str, text: tuple[str, ...] = (), label: str = "", kind: str | None = None, official_dev: bool = False
) -> Task:
    """Make a task of a CSV, TSV or JSON file, or of a folder with one file each for train, validation and test.

    `text` names one or two text columns (by default `sentence`), and `label` the label column (by default `label`), or
    several columns of 0 and 1 for a multi-label task, as in `toxic,insult`. Unless `kind` is given, labels are lists if
    all are in brackets, scores if all are numbers and some have a fraction, and class names otherwise. Files in a
    folder are called train, validation (or valid, val, dev) and test. A single file is divided 80/10/10 by a fixed
    seed, stratified by class; in a folder, missing validation and test splits are divided off. `official_dev` keeps a
    validation file whole, even if no test rows remain. `Task.origins` lists the rows of each split.
    """
    text, label = text or ("sentence",), label or "label"
    labels = label_columns(label)
    if not 1 <= len(text) <= 2 or not labels or set(labels) & set(text) or len(set(text)) < len(text):
        raise IllegalInput(
            f"expected one or two columns of text and another of labels, not {', '.join((*text, label))}"
        )
    files = table_files(Path(path), labels)
    source = OwnFiles(files, tuple(text), label, kind, official_dev, files_digest(file for _, file in files))
    about = f"column {label} from {' and '.join(text)} of {', '.join(file.name for _, file in files)}"
    return text_task(str(path), source, _found(source), about)


@remember
def _found(source: OwnFiles) -> Found:
    check_unchanged(source.files, source.digest)
    return find_rows(source.tables, source.kind, source.official_dev, label_columns(source.label))


def table_files(path: Path, labels: tuple[str, ...]) -> Files:
    """Return the files of the splits: one file, or those of a folder; a test file without labels is left out."""
    found = dict(split_files(path, format_of, _ENDS))
    if "test" in found and (names := column_names(found["test"], labels)) and not set(labels) <= set(names):
        del found["test"]  # a test without labels, as in a competition; an empty file raises when it is read
    return tuple(found.items())
