"""From encoded rows to batches of tensors, one for every step of training."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.tasks import batches
from formwright.tasks.batches import Plan, padding_share, plan_batches
from formwright.tasks.encode import Encoded
from formwright.tasks.rows import ImageRows
from formwright.train.batch import Batch, Stream
from formwright.train.losses import IGNORED

Examples = Encoded | ImageRows
_LOOKED_AT = 100  # batches among which the typical ones are found


class Shuffled:
    """Deal all rows in batches of similar length, in another random order every time they have all been dealt."""

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
        """Give the row numbers of a step's batch."""
        epoch, place = divmod(step, self.batches_per_epoch)
        if epoch != self._epoch:
            self._plan = self.plan(epoch)
            self._epoch = epoch
        return self._plan[place]

    def plan(self, epoch: int) -> Plan:
        """Give the batches of an epoch."""
        return plan_batches(self.lengths, self.size, derive(self.seed, "epoch", epoch))

    @property
    def padding(self) -> float:
        """Give the share of padding in the first epoch."""
        return padding_share(self.lengths, self.plan(0))

    @property
    def padded_length(self) -> float:
        """Give the tokens that a row takes in the mean of the first epoch, padding included."""
        return float(self.lengths.mean()) / (1 - self.padding)


@dataclass(frozen=True)
class Sentences:
    """Sentences or pairs of them with a label, a score or a span each."""

    encoded: Encoded
    order: Shuffled

    def batch(self, step: int) -> Batch:
        """Give the batch of a step."""
        return sentences(self.encoded, self.order.rows(step))


@dataclass(frozen=True)
class Images:
    """Images with a label each."""

    images: ImageRows
    order: Shuffled

    def batch(self, step: int) -> Batch:
        """Give the batch of a step."""
        return pictures(self.images, self.order.rows(step))


@dataclass(frozen=True)
class NextTokens:
    """Texts of which every next token is to be predicted."""

    encoded: Encoded
    order: Shuffled

    def batch(self, step: int) -> Batch:
        """Give the batch of a step."""
        return next_tokens(self.encoded, self.order.rows(step))


@dataclass(frozen=True)
class Translations:
    """Texts and what they are to be turned into."""

    encoded: Encoded
    order: Shuffled

    def batch(self, step: int) -> Batch:
        """Give the batch of a step."""
        return translations(self.encoded, self.order.rows(step))


@dataclass(frozen=True)
class Typical:
    """The batches of another stream that are nearest to its mean in size, for timing: any few may be short ones."""

    stream: Stream

    def batch(self, step: int) -> Batch:
        """Give the batch of a step, the most typical one first."""
        return self.stream.batch(int(self._order[step % len(self._order)]))

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        sizes = np.array([self.stream.batch(step).inputs.numel() for step in range(_LOOKED_AT)])
        return np.argsort(np.abs(sizes - sizes.mean()), kind="stable")


def sentences(encoded: Encoded, rows: NDArray[np.int64]) -> Batch:
    """Make a batch of sentences; without a mask where there is no padding."""
    taken = batches.take(encoded, rows)
    assert taken.labels is not None
    return Batch(_ids(taken.tokens), torch.from_numpy(taken.labels), _mask(taken.mask), _ids(taken.types))


def pictures(images: ImageRows, rows: NDArray[np.int64]) -> Batch:
    """Make a batch of images."""
    return Batch(torch.from_numpy(images.pixels[rows]), torch.from_numpy(images.labels[rows]))


def next_tokens(encoded: Encoded, rows: NDArray[np.int64]) -> Batch:
    """Make a batch in which the tokens but the last are read and the tokens but the first are predicted."""
    taken = batches.take(encoded, rows)
    wanted = taken.mask[:, 1:]
    labels = _ids(taken.tokens[:, 1:][wanted])
    return Batch(_ids(taken.tokens[:, :-1]), labels, _mask(taken.mask[:, :-1]), positions=torch.from_numpy(wanted))


def translations(encoded: Encoded, rows: NDArray[np.int64]) -> Batch:
    """Make a batch in which a decoder reads the target but its last token and predicts it but its first."""
    taken = batches.take(encoded, rows)
    assert taken.targets is not None
    assert taken.targets_mask is not None
    labels = np.where(taken.targets_mask, taken.targets, IGNORED)[:, 1:]
    mask = _mask(taken.targets_mask[:, :-1])
    return Batch(_ids(taken.tokens), _ids(labels), _mask(taken.mask), None, _ids(taken.targets[:, :-1]), mask)


_STREAMS: dict[str, Callable[[Encoded, Shuffled], Stream]] = {
    "sequence-classification": Sentences,
    "multi-label-classification": Sentences,
    "regression": Sentences,
    "span-extraction": Sentences,
    "causal-lm": NextTokens,
    "seq2seq-lm": Translations,
}


def lengths_of(examples: Examples) -> NDArray[np.int64]:
    """Give the number of tokens of each row; images are all alike."""
    return np.ones(len(examples), np.int64) if isinstance(examples, ImageRows) else examples.tokens.lengths


def stream_of(kind: str, examples: Examples, size: int, seed: int) -> Stream:
    """Give the stream of batches of a kind of task; masked language modelling has its own module."""
    order = Shuffled(lengths_of(examples), size, seed)
    if isinstance(examples, ImageRows):
        return Images(examples, order)
    return _STREAMS[kind](examples, order)


def in_order(examples: Examples, size: int, among: NDArray[np.int64] | None = None) -> Iterator[NDArray[np.int64]]:
    """Yield the row numbers of batches that hold every row, or every one `among` some, once, ordered by length."""
    lengths = lengths_of(examples)
    if among is None:
        yield from plan_batches(lengths, size)
        return
    yield from (among[rows] for rows in plan_batches(lengths[among], size))


def _ids(tokens: NDArray[np.int32] | NDArray[np.int64]) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(tokens, np.int64))


def _mask(mask: NDArray[np.bool_]) -> torch.Tensor | None:
    return None if mask.all() else torch.from_numpy(np.ascontiguousarray(mask))
