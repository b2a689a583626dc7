"""Tasks from a user's own tables: one file, or a folder of files for the splits."""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from formwright.core.errors import IllegalInput
from formwright.core.remember import remember, remembers
from formwright.tasks.labels import LabelKind, Labelling, gathered, label_columns, learn_labels
from formwright.tasks.metrics import best_constant, metric
from formwright.tasks.rows import Splits, TextRows
from formwright.tasks.splitting import BY_CLASS, SEED, divide, divide_by_class, hold_out
from formwright.tasks.tables import FORMATS, Table, column_names, format_of, read_table
from formwright.tasks.task import Task
from formwright.tasks.text_files import reading


@dataclass(frozen=True)
class Found:
    """The meaning of labels, and all rows."""

    labelling: Labelling
    splits: Splits[TextRows]


def find_rows(
    tables: Mapping[str, Table], kind: LabelKind | None, official_dev: bool, columns: Sequence[str] = ()
) -> Found:
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
    if official_dev and "validation" not in rows:
        raise IllegalInput(f"{tables['train'].where} comes without a validation set, so none can be kept whole")
    return Found(labelling, _divided(rows, official_dev, by_class=labelling.kind != "regression"))


def _divided(rows: Mapping[str, TextRows], official_dev: bool, by_class: bool) -> Splits[TextRows]:
    train, validation, test = rows["train"], rows.get("validation"), rows.get("test")
    deal, how = (divide_by_class, BY_CLASS) if by_class else (divide, "")
    if validation is not None and test is not None:
        return Splits(train, validation, test, division="train, validation and test as they came")
    if validation is not None:
        return hold_out(train, validation, "validation set", validation.source, official_dev, by_class)
    if test is not None:
        division = f"the training set of {len(train):,} rows, divided 90/10 by seed {SEED} into train and validation"
        kept, validation = deal(train, (90, 10), train.source)
        return Splits(kept, validation, test, division=division + how)
    division = f"all {len(train):,} rows, divided 80/10/10 by seed {SEED}"
    return Splits(*deal(train, (80, 10, 10), train.source), division=division + how)


def text_task(name: str, source: Callable[[], Splits[TextRows]], found: Found, about: str) -> Task:
    """Make the task.

    Metrics are accuracy for classes, with F1 where there are two; micro-F1, macro-F1 and subset accuracy for several
    labels; Pearson and Spearman for scores.
    """
    labelling = found.labelling
    metrics = _METRICS[labelling.kind]
    if labelling.kind == "sequence-classification" and len(labelling.names) == 2:
        metrics = (*metrics, "f1")
    kind, names, guess = labelling.kind, labelling.names, labelling.guess
    return Task(name, kind, metrics[0], source, metrics, names, _chance(found), about, guess=guess)


_METRICS: dict[LabelKind, tuple[str, ...]] = {
    "sequence-classification": ("accuracy",),
    "multi-label-classification": ("micro-f1", "macro-f1", "subset-accuracy"),
    "regression": ("pearson", "spearman"),
}


def _chance(found: Found) -> float:
    """Return the validation score of the constant answer that is best in training: the commonest class or labels."""
    train, validation = found.splits.train.labels, found.splits.validation.labels
    if found.labelling.kind == "regression":
        return 0.0
    if found.labelling.kind == "sequence-classification":
        return validation.count(Counter(train).most_common(1)[0][0]) / len(validation)
    return metric("micro-f1").compute([best_constant(train)] * len(validation), validation)


_STEMS = {"train": ("train",), "validation": ("validation", "valid", "val", "dev"), "test": ("test",)}
_ENDS = ", ".join(FORMATS) + ", or these with .gz"


@remembers
@dataclass(frozen=True)
class OwnFiles:
    """Read the splits from files; `digest` is that of their bytes, so that a changed file is noticed."""

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
    """Make a task of a CSV, TSV or JSON file, or of a folder with one file each for train, validation and test.

    `text` names one or two text columns, and `label` the label column, or several columns of 0 and 1 for a multi-label
    task, as in `toxic,insult`. Unless `kind` is given, labels are lists if all are in brackets, scores if all are
    numbers and some have a fraction, and class names otherwise. Files in a folder are called train, validation (or
    valid, val, dev) and test. A single file is divided 80/10/10 by a fixed seed, stratified by class; in a folder,
    missing validation and test splits are divided off. `official_dev` keeps a validation file whole, even if no test
    rows remain. `Task.origins` lists the rows of each split.
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
        del found["test"]  # a test without labels, as in a competition; an empty file raises when it is read
    return tuple(found.items())


def _only(folder: Path, stems: tuple[str, ...]) -> Path | None:
    with reading(folder):
        files = sorted(folder.iterdir())
    found = [file for file in files if file.name.split(".")[0].lower() in stems and format_of(file)]
    if len(found) > 1:
        raise IllegalInput(f"{folder} has {', '.join(file.name for file in found)}; expected one of them")
    return found[0] if found else None


def _digest(files: tuple[tuple[str, Path], ...]) -> str:
    digest = hashlib.sha256()
    for _, path in files:
        with reading(path), path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
