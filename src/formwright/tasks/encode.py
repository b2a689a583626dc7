"""From rows of text to arrays of tokens, and to batches of rows of similar length."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.tasks.rows import PlainText, TextRows, TranslationRows
from formwright.tasks.tokeniser import Tokeniser

IGNORED = -100  # the label of positions that no loss counts, as in transformers


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
        """Return the length of each sequence."""
        return np.diff(self.offsets)

    def padded(self, rows: NDArray[np.int64], fill: int = 0) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return some sequences as a right-padded matrix, and the mask of real values."""
        lengths = self.lengths[rows]
        column = np.arange(lengths.max(initial=0))
        mask = column < lengths[:, None]
        matrix = np.full(mask.shape, fill, np.int32)
        matrix[mask] = self.values[(self.offsets[rows][:, None] + column)[mask]]
        return matrix, mask


@dataclass(frozen=True, eq=False)
class Encoded:
    """Rows as arrays: tokens, token types, and labels or target tokens if there are any.

    `pad` is the padding token. `uncut` counts the tokens of each row, special ones included, before truncation or
    division into windows; None where nothing is ever truncated.
    """

    tokens: Ragged
    types: Ragged
    labels: NDArray[np.int64] | NDArray[np.float32] | None = None
    targets: Ragged | None = None
    pad: int = 0
    uncut: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return the number of tokens of each row."""
        return self.tokens.lengths


def encode_rows(rows: TextRows | PlainText | TranslationRows, tokeniser: Tokeniser, length: int) -> Encoded:
    """Encode rows of text in at most `length` tokens each, special ones included.

    Sentences become `[CLS] a [SEP]`, pairs `[CLS] a [SEP] b [SEP]`; the longer sentence of a pair is truncated first.
    Texts without labels are divided into pieces of `length` tokens, and none is dropped. Targets of translation begin
    with `[CLS]` and end with `[SEP]`, so that a decoder reads all but the last and predicts all but the first.
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
        case _:  # of another package
            raise IllegalInput(
                f"rows of the class {type(rows).__name__} cannot be encoded as text; the `examples` of their kind must "
                "make arrays of them (formwright.tasks.kind.Kind)"
            )


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
    """Truncate one or two sentences to fit in a row, as the `tokenizers` library does: the longer first, then both."""
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


_POOL = 16  # batches sorted together: enough to find rows of equal length, few enough to stay random

Plan = list[NDArray[np.int64]]


def plan_batches(lengths: NDArray[np.int64], size: int, rng: Generator | None = None, bucketed: bool = True) -> Plan:
    """Group rows into batches of `size`, the last one smaller, and return the row numbers of each batch.

    With a generator, rows and batches are in random order; without one, ordered by length. `bucketed` plans put rows of
    similar length together.
    """
    if size < 1:
        raise IllegalInput(f"a batch needs at least one row, not {size}")
    order = np.arange(len(lengths)) if rng is None else rng.permutation(len(lengths))
    if bucketed:
        pool = len(order) if rng is None else _POOL * size
        pools = [order[start : start + pool] for start in range(0, len(order), max(pool, 1))]
        order = np.concatenate([rows[np.argsort(lengths[rows], kind="stable")] for rows in pools] or [order])
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    return batches if rng is None else [batches[index] for index in rng.permutation(len(batches))]


def padding_share(lengths: NDArray[np.int64], plan: Plan) -> float:
    """Return the share of padding among all tokens that a plan of batches computes."""
    computed = sum(len(rows) * int(lengths[rows].max()) for rows in plan)
    return 1.0 - int(lengths.sum()) / computed if computed else 0.0
