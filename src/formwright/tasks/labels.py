"""What the labels of a table mean: a class, several labels, or a score."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from formwright.core.errors import IllegalInput, UnknownName, nearest
from formwright.tasks.label_lists import is_list, labels_in, separator_of
from formwright.tasks.lines import Faults
from formwright.tasks.rows import Label, TextRows
from formwright.tasks.tables import Table

MULTI_LABEL: Literal["multi-label-classification"] = "multi-label-classification"
LabelKind = Literal["sequence-classification", "regression", "multi-label-classification"]
TASK_KINDS: dict[str, LabelKind] = {
    "classification": "sequence-classification",
    "regression": "regression",
    "multi-label": MULTI_LABEL,
}
_FEW = 20  # classes that any column may have
_LARGEST = 1e18  # a score whose square, as in a loss, still fits into 32 bits


@dataclass(frozen=True)
class Labelling:
    """Read the last column of a table as a class, several labels or a score.

    `names` are the classes, `written` how a table writes them where it does so otherwise. Scores lie in `within`.
    `separator` stands between several labels of a cell. `guess` says why the kind was chosen, where nobody named it.
    """

    kind: LabelKind
    names: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    within: tuple[float, float] = (-_LARGEST, _LARGEST)
    separator: str = ","
    guess: str = field(default="", compare=False)

    def rows(self, table: Table) -> TextRows:
        """Give the rows of a table with the meaning of their labels; raise with up to five labels that have none."""
        faults = Faults(table.where, table.unit)
        classes = {name: index for index, name in enumerate(self.written or self.names)}
        labels: list[Label] = []
        for line, row in zip(table.lines, table.rows, strict=True):
            text = row[-1].strip()
            label, wrong = self._label(text, classes)
            if label is None:
                faults.add(line, self._expected(wrong))
            else:
                labels.append(label)
        faults.end()
        texts = tuple(row[:-1] for row in table.rows)
        return TextRows(texts, tuple(labels), numbers=tuple(range(len(table))), source=table.where)

    def _label(self, text: str, classes: Mapping[str, int]) -> tuple[Label | None, str]:
        """Give the meaning of a label, None where it has none, and what was without meaning."""
        if self.kind == "regression":
            return self._score(text), text
        if self.kind == "sequence-classification":
            return classes.get(text), text
        found = labels_in(text, self.separator)
        unknown = next((name for name in found if name not in classes), None)
        if unknown is not None:
            return None, unknown
        return tuple(int(name in found) for name in classes), text

    def _score(self, text: str) -> float | None:
        number = as_number(text)
        if number is None or not math.isfinite(number):
            return None
        return number if self.within[0] <= number <= self.within[1] else None

    def _expected(self, text: str) -> str:
        if self.kind == "regression":
            least, most = self.within
            return f"score {text!r}; expected a finite number" + (
                f" from {least:g} to {most:g}" if most < _LARGEST else f" of at most {most:g}, with a decimal point"
            )
        names = self.written or self.names
        close = nearest(text, names)
        hint = f" Nearest: {close[0]!r}." if close else ""
        some = ", ".join(names[:_FEW]) + (", ..." if len(names) > _FEW else "")
        return f"label {text!r}, which is not among those of training.{hint} Expected one of: {some}"


def kind_named(name: str) -> LabelKind | None:
    """Give the kind of task that `--task-kind` names; None where nothing was named."""
    if name and name not in TASK_KINDS:
        raise UnknownName("task kind", name, TASK_KINDS)
    return TASK_KINDS[name] if name else None


def learn_labels(table: Table, kind: LabelKind | None = None, columns: Sequence[str] = ()) -> Labelling:
    """Find out what the last column of the training rows holds.

    It holds several labels where all cells are lists in brackets, scores where every label is a number and at least one
    of them has a fraction, and names of classes otherwise: 0 and 1, or 1.0 and 2.0, are classes, unless `kind` says
    what they are. Classes are sorted, as numbers where all are. `columns` are the label columns, where there were
    several: they are the labels, and of one kind only.
    """
    written = [row[-1].strip() for row in table.rows]
    guessed, reason = _guessed(written, columns)
    guess = "" if kind else f"guessed as {_short_name(guessed)}, because {reason}; --task-kind overrides this"
    if len(columns) > 1 and kind not in (None, MULTI_LABEL):
        raise IllegalInput(f"{len(columns)} label columns ({', '.join(columns)}) are for multi-label tasks; name one")
    if (kind or guessed) == MULTI_LABEL:
        return _several_labels(table, written, columns, guess)
    _refuse_empty(table, written)
    if (kind or guessed) == "regression":
        values = {as_number(label) for label in written}
        if len(values) == 1 and None not in values:  # what is no number is refused with its line later
            raise IllegalInput(f"all rows of {table.where} have the score {written[0]}; expected different ones")
        return Labelling("regression", guess=guess)
    names = _sorted(set(written))
    if len(names) == 1:
        raise IllegalInput(f"all rows of {table.where} have the label {names[0]!r}; expected at least two classes")
    _refuse_too_many(names, len(written), table.where)
    return Labelling("sequence-classification", names, guess=guess)


def _guessed(written: Sequence[str], columns: Sequence[str]) -> tuple[LabelKind, str]:
    """Guess the kind of the labels, and say why."""
    if len(columns) > 1:
        return MULTI_LABEL, "several label columns are named"
    if all(is_list(label) for label in written if label) and any(written):
        return MULTI_LABEL, "all labels are lists in brackets"
    if _are_scores(written):
        return "regression", "all labels are numbers and some have a fraction"
    word = next((label for label in written if as_number(label) is None), None)
    if word is None:
        return "sequence-classification", "all labels are whole numbers"
    return "sequence-classification", f"some labels, such as {word[:40]!r}, are not numbers"


def _short_name(kind: LabelKind) -> str:
    return next(name for name, value in TASK_KINDS.items() if value == kind)


def _several_labels(table: Table, written: Sequence[str], columns: Sequence[str], guess: str) -> Labelling:
    separator = separator_of(written)
    found = [labels_in(cell, separator) for cell in written]
    names = tuple(columns) if len(columns) > 1 else _sorted({name for labels in found for name in labels})
    if len(names) < 2:
        raise IllegalInput(
            f"the rows of {table.where} have {len(names)} different label{'' if len(names) == 1 else 's'}; "
            "a multi-label task needs at least two"
        )
    _refuse_too_many(names, sum(map(len, found)), table.where)
    return Labelling(MULTI_LABEL, names, separator=separator, guess=guess)


def _refuse_empty(table: Table, written: Sequence[str]) -> None:
    faults = Faults(table.where, table.unit)
    for line, label in zip(table.lines, written, strict=True):
        if not label:
            faults.add(line, "an empty label")
    faults.end()


def _refuse_too_many(names: Sequence[str], labels: int, where: str) -> None:
    if len(names) > max(_FEW, labels // 2):
        numbers = all(as_number(name) is not None for name in names)
        hint = ", or if they are scores give --task-kind regression" if numbers else ""
        raise IllegalInput(f"{where} has {len(names):,} labels for {labels:,} rows; name another column{hint}")


def as_number(text: str) -> float | None:
    """Read a number; None where there is none. NaN and infinity are numbers here, and no scores."""
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None


def _are_scores(written: Sequence[str]) -> bool:
    """Say whether all labels are numbers, and some have a fraction; NaN, as a missing label is written, has none."""
    numbers = [number for label in written if (number := as_number(label)) is not None]
    return len(numbers) == len(written) and any(number % 1 for number in numbers if math.isfinite(number))


def _sorted(names: set[str]) -> tuple[str, ...]:
    if all(as_number(name) is not None for name in names):
        return tuple(sorted(names, key=lambda name: (as_number(name), name)))
    return tuple(sorted(names))
