"""From rows of text to arrays of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.tasks.rows import PlainText, Rows, TextRows, TranslationRows
from formwright.tasks.tokeniser import Tokeniser


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

    def padded(self, rows: NDArray[np.int64], fill: int = 0) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Give some sequences as a matrix filled up on the right, and the mask of what is real."""
        lengths = self.lengths[rows]
        column = np.arange(lengths.max(initial=0))
        mask = column < lengths[:, None]
        matrix = np.full(mask.shape, fill, np.int32)
        matrix[mask] = self.values[(self.offsets[rows][:, None] + column)[mask]]
        return matrix, mask


@dataclass(frozen=True, eq=False)
class Encoded:
    """Rows as arrays: tokens, which sentence each token belongs to, and labels or target tokens where there are any.

    `pad` is the token that fills up the shorter rows of a batch. `uncut` counts the tokens of each row, special
    ones included, before it was cut or divided into windows; None where nothing is ever cut.
    """

    tokens: Ragged
    types: Ragged
    labels: NDArray[np.int64] | NDArray[np.float32] | None = None
    targets: Ragged | None = None
    pad: int = 0
    uncut: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.tokens)


def encode_rows(rows: Rows, tokeniser: Tokeniser, length: int) -> Encoded:
    """Encode rows of text in at most `length` tokens each, special ones included.

    With `[CLS]` for the token that begins a row and `[SEP]` for the one that separates, sentences become
    `[CLS] a [SEP]` and pairs `[CLS] a [SEP] b [SEP]`; the longer sentence of a pair is cut first. Texts without labels
    are cut into pieces of `length` tokens, none of which is dropped. Targets of translation begin with `[CLS]` and end
    with `[SEP]`, so that a decoder reads all but the last and predicts all but the first.
    """
    if length < 8:
        raise IllegalInput(f"rows need at least 8 tokens for text and special tokens, not {length}")
    pad = tokeniser.special.pad or 0
    match rows:
        case TextRows():
            return _text(rows, tokeniser, length, pad)
        case PlainText():
            pieces = _pieces(rows, tokeniser, length)
            return Encoded(Ragged.of(pieces), _zeros(pieces), pad=pad)
        case TranslationRows():
            whole = [tokeniser.encode(texts) for texts in (rows.sources, rows.targets)]
            uncut = np.max([row_sizes([[ids] for ids in texts], tokeniser) for texts in whole], axis=0)
            sources, targets = ([frame([ids[: length - 2]], tokeniser)[0] for ids in texts] for texts in whole)
            return Encoded(Ragged.of(sources), _zeros(sources), targets=Ragged.of(targets), pad=pad, uncut=uncut)
        case _:
            raise IllegalInput("images have no tokens; give their pixels to the model as they are")


def frame(parts: Sequence[Sequence[int]], tokeniser: Tokeniser) -> tuple[list[int], list[int]]:
    """Put special tokens around one or two sentences; return all tokens and their types."""
    special, between = tokeniser.special, tokeniser.separators
    first = [special.begin, *parts[0], special.separator]
    if len(parts) == 1:
        return first, [0] * len(first)
    second = [*[special.separator] * (between - 1), *parts[1], special.separator]
    return first + second, [0] * len(first) + [tokeniser.types - 1] * len(second)


def _text(rows: TextRows, tokeniser: Tokeniser, length: int, pad: int) -> Encoded:
    strange = next((len(row) for row in rows.texts if len(row) not in (1, 2)), None)
    if strange is not None:
        raise IllegalInput(f"a row of text is a sentence or a pair of sentences, not {strange} of them")
    flat = iter(tokeniser.encode([text for row in rows.texts for text in row]))
    parts = [[next(flat) for _ in row] for row in rows.texts]
    framed = [frame(_cut(row, length, tokeniser.separators), tokeniser) for row in parts]
    whole = all(isinstance(label, int) for label in rows.labels)
    labels = np.asarray(rows.labels, np.int64) if whole else np.asarray(rows.labels, np.float32)
    tokens, types = ([row[place] for row in framed] for place in (0, 1))
    return Encoded(Ragged.of(tokens), Ragged.of(types), labels, pad=pad, uncut=row_sizes(parts, tokeniser))


def row_sizes(rows: Sequence[Sequence[Sequence[int]]], tokeniser: Tokeniser) -> NDArray[np.int64]:
    """Count the tokens of rows of one or two sentences, special ones included."""
    special = (2, 2 + tokeniser.separators)
    return np.array([sum(map(len, parts)) + special[len(parts) - 1] for parts in rows], np.int64)


def _cut(parts: list[list[int]], length: int, separators: int) -> list[list[int]]:
    """Cut one or two sentences to fit in a row, as the `tokenizers` library does: the longer first, then both."""
    if len(parts) == 1:
        return [parts[0][: length - 2]]
    room = length - 2 - separators
    sizes = [len(part) for part in parts]
    if sum(sizes) <= room:
        return parts
    shorter = 1 if sizes[0] > sizes[1] else 0
    sizes[shorter] = min(sizes[shorter], room // 2)
    sizes[1 - shorter] = room - sizes[shorter]
    return [part[:size] for part, size in zip(parts, sizes, strict=True)]


def _pieces(rows: PlainText, tokeniser: Tokeniser, length: int) -> list[list[int]]:
    room = length - 2
    texts = tokeniser.encode(rows.texts)
    starts = ((ids, start) for ids in texts for start in range(0, len(ids), room))
    return [frame([ids[start : start + room]], tokeniser)[0] for ids, start in starts]


def _zeros(sequences: Sequence[Sequence[int]]) -> Ragged:
    return Ragged.of([[0] * len(sequence) for sequence in sequences])
