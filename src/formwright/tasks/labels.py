"""What the labels of a table mean: names of classes, or scores."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from formwright.core.errors import IllegalInput, nearest
from formwright.tasks.lines import Faults
from formwright.tasks.rows import TextRows
from formwright.tasks.tables import Table

LabelKind = Literal["sequence-classification", "regression"]
_FEW = 20  # classes that any column may have
_LARGEST = 1e18  # a score whose square, as in a loss, still fits into 32 bits


@dataclass(frozen=True)
class Labelling:
    """Read the last column of a table as a class or a score.

    `names` are the classes, `written` how a table writes them where it does so otherwise. Scores lie in `within`.
    """

    kind: LabelKind
    names: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    within: tuple[float, float] = (-_LARGEST, _LARGEST)

    def rows(self, table: Table) -> TextRows:
        """Give the rows of a table with the meaning of their labels; raise with up to five labels that have none."""
        faults = Faults(table.where, table.unit)
        classes = {name: index for index, name in enumerate(self.written or self.names)}
        labels: list[int | float] = []
        for line, row in zip(table.lines, table.rows, strict=True):
            text = row[-1].strip()
            label = classes.get(text) if self.kind == "sequence-classification" else self._score(text)
            if label is None:
                faults.add(line, self._expected(text))
            else:
                labels.append(label)
        faults.end()
        texts = tuple(row[:-1] for row in table.rows)
        return TextRows(texts, tuple(labels), numbers=tuple(range(len(table))), source=table.where)

    def _score(self, text: str) -> float | None:
        number = as_number(text)
        if number is None or not math.isfinite(number):
            return None
        return number if self.within[0] <= number <= self.within[1] else None

    def _expected(self, text: str) -> str:
        if self.kind == "regression":
            least, most = self.within
            return f"score {text!r}; expected a finite number" + (
                f" from {least:g} to {most:g}" if most < _LARGEST else f" of at most {most:g}"
            )
        names = self.written or self.names
        close = nearest(text, names)
        hint = f" Nearest: {close[0]!r}." if close else ""
        some = ", ".join(names[:_FEW]) + (", ..." if len(names) > _FEW else "")
        return f"label {text!r}, which is not among those of training.{hint} Expected one of: {some}"


def learn_labels(table: Table, kind: LabelKind | None = None) -> Labelling:
    """Find out what the last column of the training rows holds.

    It holds scores where every label is a number and at least one of them has a fraction, and names of classes
    otherwise: 0 and 1, or 1.0 and 2.0, are classes, unless `kind` says what they are. Classes are sorted, as numbers
    where all are.
    """
    faults = Faults(table.where, table.unit)
    written = [row[-1].strip() for row in table.rows]
    for line, label in zip(table.lines, written, strict=True):
        if not label:
            faults.add(line, "an empty label")
    faults.end()
    if kind == "regression" or (kind is None and _are_scores(written)):
        if len({as_number(label) for label in written}) == 1:
            raise IllegalInput(f"all rows of {table.where} have the score {written[0]}; expected different ones")
        return Labelling("regression")
    names = _sorted(set(written))
    if len(names) == 1:
        raise IllegalInput(f"all rows of {table.where} have the label {names[0]!r}; expected at least two classes")
    if len(names) > max(_FEW, len(written) // 2):
        raise IllegalInput(f"{table.where} has {len(names):,} labels for {len(written):,} rows; name another column")
    return Labelling("sequence-classification", names)


def as_number(text: str) -> float | None:
    """Read a number; None where there is none. NaN and infinity are numbers here, and no scores."""
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None


def _are_scores(written: Sequence[str]) -> bool:
    numbers = [as_number(label) for label in written]
    return all(number is not None for number in numbers) and not all(number % 1 == 0 for number in numbers if number)


def _sorted(names: set[str]) -> tuple[str, ...]:
    if all(as_number(name) is not None for name in names):
        return tuple(sorted(names, key=lambda name: (as_number(name), name)))
    return tuple(sorted(names))
