"""From encoded rows to batches of tensors, one for every step of training."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.tasks.encode import Encoded, Plan, padded_batch, padding_share, plan_batches
from formwright.tasks.rows import ImageRows

IGNORED = -100  # the label of positions that no loss counts, as in transformers
Examples = Encoded | ImageRows
_LOOKED_AT = 100  # batches among which the typical ones are found


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


class Stream(Protocol):
    """Return the batch of any step; the same step always has the same batch, so that a resumed run repeats it."""

    def batch(self, step: int) -> Batch: ...


MakeBatch = Callable[[Any, NDArray[np.int64]], Batch]


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


class Plain(ShuffledStream):
    """Texts without labels, for models that learn from another model alone."""

    def __init__(self, encoded: Encoded, order: Shuffled) -> None:
        super().__init__(encoded, order, plain)


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
    taken = padded_batch(encoded, rows)
    assert taken.labels is not None
    return Batch(as_ids(taken.tokens), torch.from_numpy(taken.labels), as_mask(taken.mask), as_ids(taken.types))


def plain(encoded: Encoded, rows: NDArray[np.int64]) -> Batch:
    """Make a batch of texts without labels; its labels are zeros."""
    taken = padded_batch(encoded, rows)
    labels = torch.zeros(len(rows), dtype=torch.long)
    return Batch(as_ids(taken.tokens), labels, as_mask(taken.mask), as_ids(taken.types))


def pictures(images: ImageRows, rows: NDArray[np.int64]) -> Batch:
    """Make a batch of images."""
    return Batch(torch.from_numpy(images.pixels[rows]), torch.from_numpy(images.labels[rows]))


def next_tokens(encoded: Encoded, rows: NDArray[np.int64]) -> Batch:
    """Make a batch in which all tokens but the last are read and all but the first are predicted."""
    taken = padded_batch(encoded, rows)
    wanted = taken.mask[:, 1:]
    labels = as_ids(taken.tokens[:, 1:][wanted])
    return Batch(as_ids(taken.tokens[:, :-1]), labels, as_mask(taken.mask[:, :-1]), positions=torch.from_numpy(wanted))


def translations(encoded: Encoded, rows: NDArray[np.int64]) -> Batch:
    """Make a batch in which a decoder reads the target but its last token and predicts it but its first."""
    taken = padded_batch(encoded, rows)
    assert taken.targets is not None
    assert taken.targets_mask is not None
    labels = np.where(taken.targets_mask, taken.targets, IGNORED)[:, 1:]
    mask = as_mask(taken.targets_mask[:, :-1])
    return Batch(as_ids(taken.tokens), as_ids(labels), as_mask(taken.mask), None, as_ids(taken.targets[:, :-1]), mask)


_MAKERS: dict[str, MakeBatch] = {"causal-lm": next_tokens, "seq2seq-lm": translations}


def stream_of(kind: str, examples: Examples, size: int, seed: int) -> Stream:
    """Return the stream of batches of a kind of task; masked language modelling has its own module."""
    make = pictures if isinstance(examples, ImageRows) else _MAKERS.get(kind, sentences)
    return ShuffledStream(examples, Shuffled(lengths_of(examples), size, seed), make)


def lengths_of(examples: Examples) -> NDArray[np.int64]:
    """Return the number of tokens of each row; images all count as one."""
    return np.ones(len(examples), np.int64) if isinstance(examples, ImageRows) else examples.tokens.lengths


def in_order(examples: Examples, size: int, among: NDArray[np.int64] | None = None) -> Iterator[NDArray[np.int64]]:
    """Yield the row numbers of batches, ordered by length, that cover every row (or every row `among` some) once."""
    lengths = lengths_of(examples)
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
