"""Rows of tasks: text, translations, questions about texts, images; and their splits."""

import hashlib
import json
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput

Label = int | float | tuple[int, ...]


@dataclass(frozen=True)
class _Columns:
    """Columns of equal length; `numbers`, if there are any, are positions of the rows in their source."""

    KIND: ClassVar[str]

    def __post_init__(self) -> None:
        sizes = {name: len(column) for name, column in self._columns().items()}
        if numbers := getattr(self, "numbers", ()):
            sizes["numbers"] = len(numbers)
        if len(set(sizes.values())) > 1:
            raise IllegalInput(f"{', '.join(sizes)} must be equally many; got {', '.join(map(str, sizes.values()))}")

    def __len__(self) -> int:
        return len(next(iter(self._columns().values())))

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the content, in hexadecimal."""
        content = json.dumps([self.KIND, *self._columns().values()], separators=(",", ":"))
        return hashlib.sha256(content.encode()).hexdigest()

    def _columns(self) -> dict[str, tuple[Any, ...]]:
        return {one.name: getattr(self, one.name) for one in fields(self) if one.compare}


@dataclass(frozen=True)
class TextRows(_Columns):
    """Sentences, or pairs of them, each with a label: an index into the task's label names, or a score.

    The label of a multi-label row is a tuple with 1 for each of the task's labels that it has, and 0 for the others.

    `source` is the file of the rows, and `numbers` are their positions in it: 0 is the first row below the header, as
    in pandas. Both are empty for generated rows, and neither is compared.
    """

    KIND = "text"
    texts: tuple[tuple[str, ...], ...]
    labels: tuple[Label, ...]
    numbers: tuple[int, ...] = field(default=(), compare=False, kw_only=True)
    source: str = field(default="", compare=False, kw_only=True)


@dataclass(frozen=True)
class PlainText(_Columns):
    """Texts without labels, for language modelling."""

    KIND = "plain"
    texts: tuple[str, ...]


@dataclass(frozen=True)
class TranslationRows(_Columns):
    """Sentences and their translations."""

    KIND = "translation"
    sources: tuple[str, ...]
    targets: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ImageRows:
    """Square images (rows, channels, side, side) with values from 0 to 1, and the label of each.

    `source` names what the images come from, and `numbers` are their places in it, from 0.
    """

    pixels: NDArray[np.float32]
    labels: NDArray[np.int64]
    numbers: tuple[int, ...] = field(default=(), kw_only=True)
    source: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        if len(self.pixels) != len(self.labels):
            raise IllegalInput(f"images and labels must be equally many; got {len(self.pixels)} and {len(self.labels)}")

    def __len__(self) -> int:
        return len(self.pixels)

    @cached_property
    def digest(self) -> str:
        # fixed byte order, so that the digest is the same on every machine
        content = self.pixels.astype("<f4").tobytes() + self.labels.astype("<i8").tobytes()
        return hashlib.sha256(json.dumps(self.pixels.shape).encode() + content).hexdigest()


Rows = TextRows | PlainText | TranslationRows | ImageRows


class AnyRows(Protocol):
    """Rows of any kind: they have a length, and equal content has an equal digest."""

    def __len__(self) -> int: ...
    @property
    def digest(self) -> str: ...


R_co = TypeVar("R_co", bound=AnyRows, covariant=True)


@dataclass(frozen=True)
class Origin:
    """Where the rows of a split come from: a file or the split of a dataset, and positions in it.

    Position 0 is the first row below the header.
    """

    source: str
    rows: tuple[int, ...]


@dataclass(frozen=True)
class View(Generic[R_co]):
    """What a search may see of a task."""

    train: R_co
    validation: R_co


@dataclass(frozen=True)
class Splits(Generic[R_co]):
    """All rows of a task. Searches receive `view`, which does not lead to the test rows.

    `test` is None if all labelled rows are used for validation. `division` describes how the splits were made if the
    source did not provide all three.
    """

    train: R_co
    validation: R_co
    test: R_co | None
    division: str = field(default="", kw_only=True)

    @property
    def origins(self) -> dict[str, Origin]:
        """Return for each split its file and row positions; splits that came from no table are left out."""
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        return {
            name: Origin(rows.source, rows.numbers)  # type: ignore[union-attr]
            for name, rows in parts.items()
            if getattr(rows, "source", "")
        }

    @property
    def view(self) -> View[R_co]:
        """Return the rows that a search may see."""
        return View(self.train, self.validation)


Answer = tuple[str, int]


@dataclass(frozen=True)
class SpanRows(_Columns):
    """Questions, their contexts, and the answers: texts and the positions of their first characters.

    A question may have several annotators' answers; one without an answer is unanswerable. `source` is the file of the
    questions, and `numbers` are their positions among all its questions, from 0; neither is compared.
    """

    KIND = "span"
    questions: tuple[str, ...]
    contexts: tuple[str, ...]
    answers: tuple[tuple[Answer, ...], ...]
    numbers: tuple[int, ...] = field(default=(), compare=False, kw_only=True)
    source: str = field(default="", compare=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for row, (context, answers) in enumerate(zip(self.contexts, self.answers, strict=True)):
            for text, start in answers:
                if start < 0 or not text or not context.startswith(text, start):
                    raise IllegalInput(f"row {row}: the answer {text!r} does not stand at character {start}")

    @property
    def answerable(self) -> bool:
        """Return whether every question has an answer."""
        return all(self.answers)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """Return the texts of each row's answers, as the metrics need them."""
        return tuple(tuple(text for text, _ in answers) for answers in self.answers)
