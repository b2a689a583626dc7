"""What tasks are made of: rows of text, of pairs to translate, of images; and the splits they come in."""

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()


def _same_length(what: str, first: int, second: int) -> None:
    if first != second:
        raise IllegalInput(f"{what} must be equally many; got {first} and {second}")


Label = int | float | tuple[int, ...]


@dataclass(frozen=True)
class TextRows:
    """Sentences, or pairs of them, each with a label: an index into the task's label names, or a score.

    The label of a multi-label row is a tuple with 1 for each of the task's labels that it has, and 0 for the others.

    `source` is the file that the rows come from, and `numbers` are their places in it: 0 is the first row below the
    headings, as in a pandas table of the file. Both are empty where the rows were generated, and neither is part of
    the content: equal rows from other places are equal.
    """

    texts: tuple[tuple[str, ...], ...]
    labels: tuple[Label, ...]
    numbers: tuple[int, ...] = field(default=(), compare=False, kw_only=True)
    source: str = field(default="", compare=False, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse labels that do not belong to the texts."""
        _same_length("texts and labels", len(self.texts), len(self.labels))
        if self.numbers:
            _same_length("texts and numbers of rows", len(self.texts), len(self.numbers))

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def digest(self) -> str:
        """Give the SHA-256 of the content, in hexadecimal."""
        return _digest("text", self.texts, self.labels)


@dataclass(frozen=True)
class PlainText:
    """Texts without labels, for language modelling."""

    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def digest(self) -> str:
        """Give the SHA-256 of the content, in hexadecimal."""
        return _digest("plain", self.texts)


@dataclass(frozen=True)
class TranslationRows:
    """Sentences and their translations."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse translations that do not belong to the sentences."""
        _same_length("sources and targets", len(self.sources), len(self.targets))

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def digest(self) -> str:
        """Give the SHA-256 of the content, in hexadecimal."""
        return _digest("translation", self.sources, self.targets)


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
        """Refuse labels that do not belong to the images."""
        _same_length("images and labels", len(self.pixels), len(self.labels))

    def __len__(self) -> int:
        return len(self.pixels)

    @cached_property
    def digest(self) -> str:
        """Give the SHA-256 of the content, in hexadecimal."""
        # fixed byte order, so that the digest is the same on every machine
        content = self.pixels.astype("<f4").tobytes() + self.labels.astype("<i8").tobytes()
        return hashlib.sha256(json.dumps(self.pixels.shape).encode() + content).hexdigest()


Rows = TextRows | PlainText | TranslationRows | ImageRows


class AnyRows(Protocol):
    """Rows of whatever kind: they can be counted, and equal content has an equal digest."""

    def __len__(self) -> int: ...
    @property
    def digest(self) -> str: ...


R_co = TypeVar("R_co", bound=AnyRows, covariant=True)


@dataclass(frozen=True)
class Origin:
    """Where the rows of a split come from: the path of a file, or the name of a dataset's split, and places in it.

    Place 0 is the first row, headings not counted.
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

    `test` is None where every labelled row is wanted for validation. `division` says where the splits come from, where
    the source did not come in three labelled parts.
    """

    train: R_co
    validation: R_co
    test: R_co | None
    division: str = field(default="", kw_only=True)

    @property
    def origins(self) -> dict[str, Origin]:
        """Say for each split which rows of which file it holds; splits whose rows came from no table are left out."""
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        return {
            name: Origin(rows.source, rows.numbers)  # type: ignore[union-attr]
            for name, rows in parts.items()
            if getattr(rows, "source", "")
        }

    @property
    def view(self) -> View[R_co]:
        """Give the rows that a search may see."""
        return View(self.train, self.validation)
