"""Rows of tasks: text, translations, questions about texts, pictures; and their splits."""

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput

Label = int | float | tuple[int, ...]


def numbers_at(numbers: Sequence[int], places: Sequence[int]) -> tuple[int, ...]:
    """Return the positions of the rows at some places in their source; without any, rows are as in their source."""
    return tuple(numbers[place] for place in places) if numbers else tuple(places)


@dataclass(frozen=True)
class _Columns:
    """Columns of equal length; `numbers`, if there are any, are positions of the rows in their source."""

    KIND: ClassVar[str]
    UNIT: ClassVar[str] = "texts"

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

    def take(self, places: Sequence[int]) -> Self:
        """Return the rows at some places."""
        columns = {name: tuple(one[place] for place in places) for name, one in self._columns().items()}
        if hasattr(self, "numbers"):
            columns["numbers"] = numbers_at(self.numbers, places)
        return replace(self, **columns)

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

    @property
    def all_texts(self) -> tuple[str, ...]:
        return tuple(text for row in self.texts for text in row)

    @property
    def shown(self) -> dict[str, Sequence[Any]]:
        return {"text": self.texts, "label": self.labels}

    @property
    def contents(self) -> Sequence[Hashable]:
        """Return the input of each row; rows of equal input belong to one split."""
        return self.texts


@dataclass(frozen=True)
class TaggedRows(_Columns):
    """Sentences as words, and the tag of each word: an index into the task's label names.

    `source` is the file of the sentences, and `numbers` are their positions in it, from 0; neither is compared.
    """

    KIND = "tagged"
    UNIT = "sentences"
    words: tuple[tuple[str, ...], ...]
    tags: tuple[tuple[int, ...], ...]
    numbers: tuple[int, ...] = field(default=(), compare=False, kw_only=True)
    source: str = field(default="", compare=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for row, (words, tags) in enumerate(zip(self.words, self.tags, strict=True)):
            if len(words) != len(tags):
                raise IllegalInput(f"row {row} has {len(words)} words and {len(tags)} tags")

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the sentences as texts, with a space between words."""
        return tuple(" ".join(words) for words in self.words)

    @property
    def all_texts(self) -> tuple[str, ...]:
        return self.texts

    @property
    def labels(self) -> tuple[int, ...]:
        """Return the tags of all words, one row after another."""
        return tuple(tag for row in self.tags for tag in row)

    @property
    def shown(self) -> dict[str, Sequence[Any]]:
        return {"words": self.words, "tags": self.tags}

    @property
    def answers(self) -> tuple[tuple[int, ...], ...]:
        """Return the tags of each row; `labels` are those of all words."""
        return self.tags

    @property
    def contents(self) -> Sequence[Hashable]:
        """Return the words of each row; rows of equal words belong to one split."""
        return self.words


@dataclass(frozen=True)
class PlainText(_Columns):
    """Texts without labels, for language modelling."""

    KIND = "plain"
    texts: tuple[str, ...]

    @property
    def all_texts(self) -> tuple[str, ...]:
        return self.texts

    @property
    def shown(self) -> dict[str, Sequence[Any]]:
        return {"text": self.texts}


@dataclass(frozen=True)
class TranslationRows(_Columns):
    """Sentences and their translations.

    `source` is the file of the rows, and `numbers` are their positions in it, as of `TextRows`; neither is compared.
    """

    KIND = "translation"
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    numbers: tuple[int, ...] = field(default=(), compare=False, kw_only=True)
    source: str = field(default="", compare=False, kw_only=True)

    @property
    def all_texts(self) -> tuple[str, ...]:
        return (*self.sources, *self.targets)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the answer to each row: its translation."""
        return self.targets

    @property
    def answers(self) -> None:
        """Return None: a sentence may have several right translations, which do not contradict each other."""
        return

    @property
    def shown(self) -> dict[str, Sequence[Any]]:
        return {"source": self.sources, "target": self.targets}

    @property
    def contents(self) -> Sequence[Hashable]:
        """Return the input of each row; rows of equal input belong to one split."""
        return self.sources


@dataclass(frozen=True)
class Scale:
    """How values are normalised before a model reads them: less `mean`, divided by `deviation`, by channel."""

    mean: tuple[float, ...]
    deviation: tuple[float, ...]


_HASHED = 4096  # pictures that are turned into numbers at once


@dataclass(frozen=True, eq=False)
class ImageRows:
    """Square pictures (rows, channels, side, side), and the label of each.

    Pixels are bytes, which stand for 0 to 1 in steps of 1/255, or numbers from 0 to 1. As examples of a design they are
    normalised by `scale`, which the digest leaves out. `source` names what the pictures come from, and `numbers` are
    their places in it, from 0.
    """

    UNIT: ClassVar[str] = "pictures"
    pixels: NDArray[np.uint8] | NDArray[np.float32]
    labels: NDArray[np.int64]
    scale: Scale | None = field(default=None, kw_only=True)
    numbers: tuple[int, ...] = field(default=(), kw_only=True)
    source: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        if len(self.pixels) != len(self.labels):
            raise IllegalInput(f"images and labels must be equally many; got {len(self.pixels)} and {len(self.labels)}")

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return 1 for each image: all are of one size."""
        return np.ones(len(self), np.int64)

    @property
    def uncut(self) -> None:
        """Return None, since no image is truncated."""
        return

    @property
    def shown(self) -> dict[str, Sequence[Any]]:
        size = " x ".join(str(side) for side in self.pixels.shape[1:])
        return {"image": [f"{size} values"] * len(self), "label": self.labels.tolist()}

    @cached_property
    def digest(self) -> str:
        # fixed byte order, so that the digest is the same on every machine
        found = hashlib.sha256(json.dumps(self.pixels.shape).encode())
        for start in range(0, len(self), _HASHED):
            found.update(_from_zero_to_one(self.pixels[start : start + _HASHED]).astype("<f4").tobytes())
        found.update(self.labels.astype("<i8").tobytes())
        return found.hexdigest()

    @property
    def contents(self) -> Sequence[Hashable]:
        """Return a hash of each picture; equal pictures belong to one split."""
        return [hashlib.blake2b(picture.tobytes(), digest_size=16).digest() for picture in self.pixels]

    def take(self, places: Sequence[int]) -> Self:
        """Return the rows at some places."""
        rows = np.asarray(places, np.int64)
        numbers = numbers_at(self.numbers, places)
        return replace(self, pixels=self.pixels[rows], labels=self.labels[rows], numbers=numbers)

    def values(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return some pictures as models read them."""
        found = _from_zero_to_one(self.pixels[rows])
        if self.scale is None:
            return found
        mean, deviation = (np.array(one, np.float32)[:, None, None] for one in (self.scale.mean, self.scale.deviation))
        return (found - mean) / deviation


def _from_zero_to_one(pixels: NDArray[np.uint8] | NDArray[np.float32]) -> NDArray[np.float32]:
    if pixels.dtype != np.uint8:
        return pixels  # type: ignore[return-value]
    return np.divide(pixels, np.float32(255), dtype=np.float32)


class AnyRows(Protocol):
    """Rows of any kind: they have a length and can be taken by their places, and equal content has an equal digest.

    `shown` are the columns that a user may see, by name; the input comes first.
    """

    def __len__(self) -> int: ...
    @property
    def digest(self) -> str: ...
    def take(self, places: Sequence[int]) -> Self: ...
    @property
    def shown(self) -> Mapping[str, Sequence[Any]]: ...


class RowsOfText(AnyRows, Protocol):
    """Rows with text, on which a tokeniser can be trained."""

    @property
    def all_texts(self) -> tuple[str, ...]: ...


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
    def all_texts(self) -> tuple[str, ...]:
        return (*self.questions, *dict.fromkeys(self.contexts))  # many questions share a context

    @property
    def shown(self) -> dict[str, Sequence[Any]]:
        return {"context": self.contexts, "question": self.questions, "answers": self.texts}

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """Return the texts of each row's answers, as the metrics need them."""
        return tuple(tuple(text for text, _ in answers) for answers in self.answers)
