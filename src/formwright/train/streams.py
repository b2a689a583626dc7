"""From encoded rows to batches of tensors, one for every step of training; masked tokens differ at every step."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.tasks.encode import IGNORED, Encoded, Plan, padding_share, plan_batches
from formwright.tasks.frames import FrameExamples
from formwright.tasks.kind import kind_of
from formwright.tasks.rows import ImageRows
from formwright.tasks.tag_tokens import TaggedTokens
from formwright.tasks.tokeniser import Tokeniser

if TYPE_CHECKING:
    from formwright.train.prepare import Prepared

_LOOKED_AT = 100  # batches among which the typical ones are found
_HIDDEN, _RANDOM = 0.8, 0.1  # of the chosen tokens; the others stay, as in BERT


@dataclass(frozen=True)
class Batch:
    """Tensors of one batch.

    `inputs` are token ids, pixels or frames; `mask` is true for real tokens; `labels` are what the loss needs.
    `positions` marks the tokens whose vocabulary scores are needed; `targets` are what a decoder reads. `follows` says,
    in next-sentence prediction, whether the second sentence of a pair follows the first.
    """

    inputs: Tensor
    labels: Tensor
    mask: Tensor | None = None
    types: Tensor | None = None
    targets: Tensor | None = None
    targets_mask: Tensor | None = None
    positions: Tensor | None = None
    follows: Tensor | None = None

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on a device; itself if it is already there."""
        if self.inputs.device == device:
            return self
        tensors = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: tensor.to(device) for name, tensor in tensors.items() if tensor is not None})

    def share(self, place: int, shares: int) -> "Batch":
        """Return one of several equal shares of the rows: every n-th row, beginning at `place`."""
        if shares == 1:
            return self
        tensors = {field.name: getattr(self, field.name) for field in fields(self)}
        found = {name: tensor[place::shares] for name, tensor in tensors.items() if tensor is not None}
        if self.positions is not None:  # labels are those of the marked tokens, one after another
            wanted = torch.zeros_like(self.positions)
            wanted[place::shares] = True
            found["labels"] = self.labels[wanted[self.positions]]
        return Batch(**found)


@runtime_checkable
class Examples(Protocol):
    """Rows as arrays.

    `labels` are what a model should answer, None if that is in the rows; `lengths` are in tokens. `uncut` are the
    lengths before truncation, None if nothing is ever truncated.
    """

    @property
    def labels(self) -> NDArray[Any] | None: ...
    @property
    def lengths(self) -> NDArray[np.int64]: ...
    @property
    def uncut(self) -> NDArray[np.int64] | None: ...
    def __len__(self) -> int: ...


class Stream(Protocol):
    """Return the batch of any step; the same step always has the same batch, so that a resumed run repeats it."""

    def batch(self, step: int) -> Batch: ...


MakeBatch = Callable[[Any, NDArray[np.int64]], Batch]


class KeptBatches:
    """Make batches and move them to a device once, for models that are judged one after another on the same rows.

    They are kept as far as they fit into `most` bytes; the others are made each time.
    """

    def __init__(self, most: int = 1 << 28) -> None:
        self._left = most
        self._kept: dict[tuple[str, bytes, str], Batch] = {}

    def batch(self, make: MakeBatch, examples: Any, rows: NDArray[np.int64], device: torch.device) -> Batch:
        key = (getattr(make, "__qualname__", repr(make)), rows.tobytes(), str(device))
        if key in self._kept:
            return self._kept[key]
        found = make(examples, rows).to(device)
        tensors = (getattr(found, one.name) for one in fields(found))
        size = sum(tensor.nbytes for tensor in tensors if tensor is not None)
        if size <= self._left:
            self._left -= size
            self._kept[key] = found
        return found


class Shuffled:
    """Iterate over all rows in batches of similar length, in another random order every epoch."""

    def __init__(self, lengths: NDArray[np.int64], size: int, seed: int) -> None:
        if not len(lengths):
            raise IllegalInput("there are no rows to train on")
        self.lengths = lengths
        self.size = size
        self.seed = seed
        self.batches_per_epoch = -(-len(lengths) // size)
        self._epoch = -1
        self._plan: Plan = []

    def rows(self, step: int) -> NDArray[np.int64]:
        """Return the row numbers of a step's batch."""
        epoch, place = divmod(step, self.batches_per_epoch)
        if epoch != self._epoch:
            self._plan = self.plan(epoch)
            self._epoch = epoch
        return self._plan[place]

    def plan(self, epoch: int) -> Plan:
        """Return the batches of an epoch."""
        return plan_batches(self.lengths, self.size, derive(self.seed, "epoch", epoch))

    @property
    def padding(self) -> float:
        """Return the share of padding in the first epoch."""
        return padding_share(self.lengths, self.plan(0))

    @property
    def padded_length(self) -> float:
        """Return the mean number of tokens of a row in the first epoch, padding included."""
        return float(self.lengths.mean()) / (1 - self.padding)


@dataclass(frozen=True)
class ShuffledStream:
    """Batches of examples in shuffled order; `make` turns some rows into a batch."""

    examples: Examples
    order: Shuffled
    make: MakeBatch

    def batch(self, step: int) -> Batch:
        return self.make(self.examples, self.order.rows(step))


@dataclass(frozen=True)
class Masking:
    """The mask token, the tokens that are never masked, the size of the vocabulary, and the share to mask."""

    mask: int
    spared: tuple[int, ...]
    vocabulary: int
    share: float = 0.15

    @classmethod
    def of(cls, tokeniser: Tokeniser, share: float = 0.15) -> "Masking":
        """Read the special tokens off a tokeniser."""
        special = tokeniser.special
        if special.mask is None:
            raise IllegalInput("this tokeniser has no mask token, which masked language modelling needs")
        spared = (special.pad, special.begin, special.separator, special.mask)
        return cls(special.mask, tuple(token for token in spared if token is not None), tokeniser.size, share)

    def hide(
        self, tokens: NDArray[np.int32], mask: NDArray[np.bool_], rng: Generator
    ) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Choose tokens, mask most of them, and return the tokens to read and the positions of the chosen ones."""
        free = mask & ~np.isin(tokens, self.spared)
        draws = rng.random(tokens.shape)
        chosen = free & (draws < self.share)
        if not chosen.any():  # a batch of very few tokens: at least one must be predicted
            chosen = free & (draws == np.where(free, draws, 2.0).min())
        fate = rng.random(tokens.shape)
        read = np.where(chosen & (fate < _HIDDEN), self.mask, tokens)
        other = chosen & (fate >= _HIDDEN) & (fate < _HIDDEN + _RANDOM)
        return np.where(other, rng.integers(self.vocabulary, size=tokens.shape), read).astype(np.int32), chosen


@dataclass(frozen=True)
class Masked:
    """Texts, or pairs of sentences for next-sentence prediction, with masked tokens."""

    encoded: Encoded
    order: Shuffled
    masking: Masking

    def batch(self, step: int) -> Batch:
        """Return the batch of a step; another step masks other tokens of the same rows."""
        return masked(self.encoded, self.order.rows(step), self.masking, derive(self.order.seed, "mask", step))


@dataclass(frozen=True)
class Typical:
    """The batches of another stream whose size is nearest to its mean, for timing: the first few may be short ones."""

    stream: Stream

    def batch(self, step: int) -> Batch:
        """Return the batch of a step, the most typical one first."""
        return self.stream.batch(int(self._order[step % len(self._order)]))

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        sizes = np.array([self.stream.batch(step).inputs.numel() for step in range(_LOOKED_AT)])
        return np.argsort(np.abs(sizes - sizes.mean()), kind="stable")


def sentences(encoded: Encoded, rows: NDArray[np.int64]) -> Batch:
    """Make a batch of labelled sentences, pairs or spans; without a mask where there is no padding."""
    assert encoded.labels is not None
    return replace(plain(encoded, rows), labels=torch.from_numpy(encoded.labels[rows]))


def tagged(encoded: TaggedTokens, rows: NDArray[np.int64]) -> Batch:
    """Make a batch of sentences with a label for each token; those that begin no word are ignored."""
    labels, _ = encoded.tags.padded(rows, IGNORED)
    return replace(plain(encoded, rows), labels=as_ids(labels))


def plain(encoded: Encoded, rows: NDArray[np.int64]) -> Batch:
    """Make a batch of texts without labels; its labels are zeros."""
    tokens, mask = encoded.tokens.padded(rows, encoded.pad)
    types, _ = encoded.types.padded(rows)
    return Batch(as_ids(tokens), torch.zeros(len(rows), dtype=torch.long), as_mask(mask), as_ids(types))


def pictures(images: ImageRows, rows: NDArray[np.int64]) -> Batch:
    """Make a batch of images."""
    return Batch(torch.from_numpy(images.values(rows)), torch.from_numpy(images.labels[rows]))


def frames(examples: FrameExamples, rows: NDArray[np.int64]) -> Batch:
    """Make a batch of recordings or series; without a mask where there is no padding."""
    values, mask = examples.padded(rows)
    return Batch(torch.from_numpy(values), torch.from_numpy(examples.labels[rows]), as_mask(mask))


def next_tokens(encoded: Encoded, rows: NDArray[np.int64]) -> Batch:
    """Make a batch in which all tokens but the last are read and all but the first are predicted."""
    tokens, mask = encoded.tokens.padded(rows, encoded.pad)
    wanted = mask[:, 1:]
    labels = as_ids(tokens[:, 1:][wanted])
    return Batch(as_ids(tokens[:, :-1]), labels, as_mask(mask[:, :-1]), positions=torch.from_numpy(wanted))


def translations(encoded: Encoded, rows: NDArray[np.int64]) -> Batch:
    """Make a batch in which a decoder reads the target but its last token and predicts it but its first."""
    assert encoded.targets is not None
    tokens, mask = encoded.tokens.padded(rows, encoded.pad)
    targets, targets_mask = encoded.targets.padded(rows, encoded.pad)
    labels = as_ids(np.where(targets_mask, targets, IGNORED)[:, 1:])
    return Batch(as_ids(tokens), labels, as_mask(mask), None, as_ids(targets[:, :-1]), as_mask(targets_mask[:, :-1]))


def masked(encoded: Encoded, rows: NDArray[np.int64], masking: Masking, rng: Generator) -> Batch:
    """Make a batch with masked tokens; labels are the original tokens, in the order of `positions`."""
    tokens, mask = encoded.tokens.padded(rows, encoded.pad)
    read, chosen = masking.hide(tokens, mask, rng)
    return Batch(
        inputs=as_ids(read),
        labels=as_ids(tokens[chosen]),
        mask=as_mask(mask),
        types=as_ids(encoded.types.padded(rows)[0]),
        positions=torch.from_numpy(chosen),
        follows=None if encoded.labels is None else torch.from_numpy(encoded.labels[rows]),
    )


def shuffled_stream(prepared: "Prepared", order: Shuffled) -> Stream:
    """Return batches of the training rows as the kind of the task makes them."""
    return ShuffledStream(prepared.train.examples, order, kind_of(prepared.task).batch)


def masked_stream(prepared: "Prepared", order: Shuffled) -> Stream:
    """Return batches of the training rows with masked tokens."""
    return Masked(cast(Encoded, prepared.train.examples), order, Masking.of(prepared.text_tokeniser))


def in_order(examples: Examples, size: int, among: NDArray[np.int64] | None = None) -> Iterator[NDArray[np.int64]]:
    """Yield the row numbers of batches, ordered by length, that cover every row (or every row `among` some) once."""
    lengths = examples.lengths
    if among is None:
        yield from plan_batches(lengths, size)
        return
    yield from (among[rows] for rows in plan_batches(lengths[among], size))


def as_ids(tokens: NDArray[np.int32] | NDArray[np.int64]) -> Tensor:
    """Turn token ids into a tensor."""
    return torch.from_numpy(np.ascontiguousarray(tokens, np.int64))


def as_mask(mask: NDArray[np.bool_]) -> Tensor | None:
    """Turn a mask into a tensor; None where all tokens are real, so that attention takes its faster path."""
    return None if mask.all() else torch.from_numpy(np.ascontiguousarray(mask))
