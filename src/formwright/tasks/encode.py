"""From rows of text to arrays of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.tasks.rows import PlainText, Rows, TextRows, TranslationRows
from formwright.tasks.tokeniser import CLASS, SEPARATOR, WordPiece


@dataclass(frozen=True, eq=False)
class Ragged:
    """Sequences of unequal length in one flat array: sequence i is `values[offsets[i]:offsets[i + 1]]`."""

    values: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> "Ragged":
        """Lay sequences end to end."""
        lengths = [len(sequence) for sequence in sequences]
        values = np.fromiter(chain.from_iterable(sequences), np.int32, sum(lengths))
        return cls(values, np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[np.int32]:
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Give the length of each sequence."""
        return np.diff(self.offsets)

    def padded(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Give some sequences as a matrix filled up with 0 on the right, and the mask of what is real."""
        lengths = self.lengths[rows]
        column = np.arange(lengths.max(initial=0))
        mask = column < lengths[:, None]
        matrix = np.zeros(mask.shape, np.int32)
        matrix[mask] = self.values[(self.offsets[rows][:, None] + column)[mask]]
        return matrix, mask


@dataclass(frozen=True, eq=False)
class Encoded:
    """Rows as arrays: tokens, which sentence each token belongs to, and labels or target tokens where there are any."""

    tokens: Ragged
    types: Ragged
    labels: NDArray[np.int64] | NDArray[np.float32] | None = None
    targets: Ragged | None = None

    def __len__(self) -> int:
        return len(self.tokens)


def encode_rows(rows: Rows, tokeniser: WordPiece, length: int) -> Encoded:
    """Encode rows of text in at most `length` tokens each, special ones included.

    Sentences become `[CLS] a [SEP]` and pairs `[CLS] a [SEP] b [SEP]`; the longer sentence of a pair is cut first.
    Texts without labels are cut into pieces of `length` tokens, none of which is dropped. Targets of translation begin
    with `[CLS]` and end with `[SEP]`, so that a decoder reads all but the last and predicts all but the first.
    """
    if length < 8:
        raise IllegalInput(f"rows need at least 8 tokens for text and special tokens, not {length}")
    match rows:
        case TextRows():
            return _text(rows, tokeniser, length)
        case PlainText():
            pieces = [piece for ids in tokeniser.encode(rows.texts) for piece in _pieces(ids, length)]
            return Encoded(Ragged.of(pieces), _zeros(pieces))
        case TranslationRows():
            sources = [_framed([ids], length) for ids in tokeniser.encode(rows.sources)]
            targets = [_framed([ids], length) for ids in tokeniser.encode(rows.targets)]
            return Encoded(Ragged.of(sources), _zeros(sources), targets=Ragged.of(targets))
        case _:
            raise IllegalInput("images have no tokens; give their pixels to the model as they are")


def _text(rows: TextRows, tokeniser: WordPiece, length: int) -> Encoded:
    flat = iter(tokeniser.encode([text for row in rows.texts for text in row]))
    parts = [[next(flat) for _ in row] for row in rows.texts]
    parts = [_cut(row, length - 1 - len(row)) for row in parts]
    types = [[0] * (len(row[0]) + 2) + [1] * sum(len(part) + 1 for part in row[1:]) for row in parts]
    whole = all(isinstance(label, int) for label in rows.labels)
    labels = np.asarray(rows.labels, np.int64) if whole else np.asarray(rows.labels, np.float32)
    return Encoded(Ragged.of([_framed(row, length) for row in parts]), Ragged.of(types), labels)


def _cut(parts: list[list[int]], room: int) -> list[list[int]]:
    lengths = [len(part) for part in parts]
    while sum(lengths) > room:
        lengths[lengths.index(max(lengths))] -= 1
    return [part[:kept] for part, kept in zip(parts, lengths, strict=True)]


def _framed(parts: list[list[int]], length: int) -> list[int]:
    parts = _cut(parts, length - 1 - len(parts))
    return [CLASS, *(token for part in parts for token in (*part, SEPARATOR))]


def _pieces(ids: list[int], length: int) -> list[list[int]]:
    room = length - 2
    return [_framed([ids[start : start + room]], length) for start in range(0, len(ids), room)]


def _zeros(sequences: Sequence[Sequence[int]]) -> Ragged:
    return Ragged.of([[0] * len(sequence) for sequence in sequences])
