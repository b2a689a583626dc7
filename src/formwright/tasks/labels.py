"""What the labels of a table mean: a class, several labels, or a score."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from formwright.core.errors import IllegalInput, nearest_hint
from formwright.tasks.kind import KINDS, guess_words
from formwright.tasks.rows import Label, TextRows
from formwright.tasks.tables import Table
from formwright.tasks.text_files import Faults

_FLAGS = {"0": False, "0.0": False, "false": False, "no": False, "1": True, "1.0": True, "true": True, "yes": True}


def label_columns(label: str) -> tuple[str, ...]:
    """List the label columns that a text such as `toxic,insult` names."""
    return tuple(name.strip() for name in label.split(",") if name.strip())


def separator_of(cells: Sequence[str]) -> str:
    """Return the separator of the labels of a column: the first of `|`, `;` and `,` in any cell without brackets."""
    joined = "\n".join(cell for cell in cells if not is_list(cell))
    return next((letter for letter in "|;," if letter in joined), ",")


def is_list(cell: str) -> bool:
    """Return whether a cell is written as a list in brackets."""
    return cell.startswith("[") and cell.endswith("]")


def labels_in(cell: str, separator: str) -> tuple[str, ...]:
    """List the labels of a cell, each once, in their order; none where the cell is empty.

    A cell in brackets is a JSON array, or a Python list as pandas writes it; others are separated by `separator`.
    """
    if not is_list(cell):
        names = cell.split(separator)
    else:
        try:
            names = [name if isinstance(name, str) else json.dumps(name) for name in json.loads(cell)]
        except (ValueError, RecursionError):
            names = [name.strip().strip("'\"") for name in cell[1:-1].split(",")]
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))


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


MULTI_LABEL = "multi-label-classification"
_FEW = 20  # classes that any column may have
_LARGEST = 1e18  # a score whose square, as in a loss, still fits into 32 bits


@dataclass(frozen=True)
class Labelling:
    """Read the last column of a table as a class, several labels or a score.

    `names` are the classes, `written` their spelling in the table if it differs. Scores lie in `within`. `separator`
    separates several labels of a cell. `guess` says why the kind was chosen if it was not given.
    """

    kind: str
    names: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    within: tuple[float, float] = (-_LARGEST, _LARGEST)
    separator: str = ","
    guess: str = field(default="", compare=False)

    def rows(self, table: Table) -> TextRows:
        """Return the rows of a table with parsed labels; raise with up to five labels that cannot be parsed."""
        faults = Faults(table.where, table.unit)
        classes = {name: index for index, name in enumerate(self.written or self.names)}
        labels: list[Label] = []
        for line, row in zip(table.lines, table.rows, strict=True):
            label, text = self._label(row[-1].strip(), classes)
            if label is None:
                faults.add(line, self._expected(text))
            else:
                labels.append(label)
        faults.end()
        texts = tuple(row[:-1] for row in table.rows)
        return TextRows(texts, tuple(labels), numbers=tuple(range(len(table))), source=table.where)

    def _label(self, text: str, classes: Mapping[str, int]) -> tuple[Label | None, str]:
        """Return a parsed label and its text; None and the unknown text if it cannot be parsed."""
        if not KINDS.get(self.kind).classes:
            number = as_number(text)  # no comparison is true of NaN
            return number if number is not None and self.within[0] <= number <= self.within[1] else None, text
        if not KINDS.get(self.kind).multi_label:
            return classes.get(text), text
        found = labels_in(text, self.separator)
        unknown = next((name for name in found if name not in classes), None)
        return (tuple(int(name in found) for name in classes), text) if unknown is None else (None, unknown)

    def _expected(self, text: str) -> str:
        if not KINDS.get(self.kind).classes:
            least, most = self.within
            return f"score {text!r}; expected a finite number" + (
                f" from {least:g} to {most:g}" if most < _LARGEST else f" of at most {most:g}, with a decimal point"
            )
        names = self.written or self.names
        hint = nearest_hint(text, names)
        some = ", ".join(names[:_FEW]) + (", ..." if len(names) > _FEW else "")
        return f"label {text!r}, which is not among those of training.{hint} Expected one of: {some}"


def learn_labels(table: Table, kind: str | None = None, columns: Sequence[str] = ()) -> Labelling:
    """Infer the meaning of the last column of the training rows.

    Labels are lists if all cells are in brackets, scores if all are numbers and at least one has a fraction, and class
    names otherwise: 0 and 1, or 1.0 and 2.0, are classes unless `kind` says otherwise. Classes are sorted, as numbers
    if all are numbers. `columns` are the label columns of a multi-label task, if there are several.
    """
    written = [row[-1].strip() for row in table.rows]
    guessed, reason = _guessed(written, columns)
    guess = "" if kind else guess_words(KINDS.get(guessed), reason)
    if len(columns) > 1 and kind not in (None, MULTI_LABEL):
        raise IllegalInput(f"{len(columns)} label columns ({', '.join(columns)}) are for multi-label tasks; name one")
    chosen = KINDS.get(kind or guessed)
    if chosen.multi_label:
        return _several_labels(table, written, columns, guess)
    faults = Faults(table.where, table.unit)
    for line, label in zip(table.lines, written, strict=True):
        if not label:
            faults.add(line, "an empty label")
    faults.end()
    if not chosen.classes:
        values = {as_number(label) for label in written}
        if len(values) == 1 and None not in values:  # what is no number is refused with its line later
            raise IllegalInput(f"all rows of {table.where} have the score {written[0]}; expected different ones")
        return Labelling(chosen.name, guess=guess)
    names = _sorted(set(written))
    if len(names) == 1:
        raise IllegalInput(f"all rows of {table.where} have the label {names[0]!r}; expected at least two classes")
    _reject_too_many(names, len(written), table.where)
    return Labelling(chosen.name, names, guess=guess)


def _guessed(written: Sequence[str], columns: Sequence[str]) -> tuple[str, str]:
    """Guess the kind of the labels, and say why."""
    if len(columns) > 1:
        return MULTI_LABEL, "several label columns are named"
    if all(is_list(label) for label in written if label) and any(written):
        return MULTI_LABEL, "all labels are lists in brackets"
    word = next((label for label in written if as_number(label) is None), None)
    if word is not None:
        return "sequence-classification", f"some labels, such as {word[:40]!r}, are not numbers"
    # NaN, as a missing label is written, has no fraction
    if any(number % 1 for number in map(float, written) if math.isfinite(number)):
        return "regression", "all labels are numbers and some have a fraction"
    return "sequence-classification", "all labels are whole numbers"


def _several_labels(table: Table, written: Sequence[str], columns: Sequence[str], guess: str) -> Labelling:
    separator = separator_of(written)
    found = [labels_in(cell, separator) for cell in written]
    names = tuple(columns) if len(columns) > 1 else _sorted({name for labels in found for name in labels})
    if len(names) < 2:
        raise IllegalInput(
            f"the rows of {table.where} have {len(names)} different label{'' if len(names) == 1 else 's'}; "
            "a multi-label task needs at least two"
        )
    _reject_too_many(names, sum(map(len, found)), table.where)
    return Labelling(MULTI_LABEL, names, separator=separator, guess=guess)


def _reject_too_many(names: Sequence[str], labels: int, where: str) -> None:
    if len(names) > max(_FEW, labels // 2):
        numbers = all(as_number(name) is not None for name in names)
        hint = ", or if they are scores give --task-kind regression" if numbers else ""
        raise IllegalInput(f"{where} has {len(names):,} labels for {labels:,} rows; name another column{hint}")


def as_number(text: str) -> float | None:
    """Parse a number; None if it is not one. NaN and infinity count as numbers here, but not as scores."""
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None


def _sorted(names: set[str]) -> tuple[str, ...]:
    if all(as_number(name) is not None for name in names):
        return tuple(sorted(names, key=lambda name: (as_number(name), name)))
    return tuple(sorted(names))
