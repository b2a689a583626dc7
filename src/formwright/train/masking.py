"""Masked language modelling: other tokens are hidden every time, and scores are computed for those alone."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.tasks import batches
from formwright.tasks.encode import Encoded
from formwright.tasks.tokeniser import Tokeniser
from formwright.train.batch import Batch
from formwright.train.streams import Shuffled

_HIDDEN, _RANDOM = 0.8, 0.1  # of the chosen tokens; the others stay, as in BERT


@dataclass(frozen=True)
class Masking:
    """Say which token hides others, which are never hidden, and how many tokens there are to put in their place."""

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
        """Choose tokens, hide most of them, and return the tokens to read and where the chosen ones are."""
        free = mask & ~np.isin(tokens, self.spared)
        draws = rng.random(tokens.shape)
        chosen = free & (draws < self.share)
        if not chosen.any():  # a batch of very few tokens: there must be something to learn
            chosen = free & (draws == np.where(free, draws, 2.0).min())
        fate = rng.random(tokens.shape)
        read = np.where(chosen & (fate < _HIDDEN), self.mask, tokens)
        other = chosen & (fate >= _HIDDEN) & (fate < _HIDDEN + _RANDOM)
        return np.where(other, rng.integers(self.vocabulary, size=tokens.shape), read).astype(np.int32), chosen


@dataclass(frozen=True)
class Masked:
    """Texts, or pairs of sentences of which is known whether they follow each other, with hidden tokens."""

    encoded: Encoded
    order: Shuffled
    masking: Masking

    def batch(self, step: int) -> Batch:
        """Give the batch of a step; the same rows are hidden differently in another step."""
        return masked(self.encoded, self.order.rows(step), self.masking, derive(self.order.seed, "mask", step))


def masked(encoded: Encoded, rows: NDArray[np.int64], masking: Masking, rng: Generator) -> Batch:
    """Make a batch of which some tokens are hidden; labels are those tokens, in the order of `positions`."""
    taken = batches.take(encoded, rows)
    read, chosen = masking.hide(taken.tokens, taken.mask, rng)
    return Batch(
        inputs=torch.from_numpy(read.astype(np.int64)),
        labels=torch.from_numpy(taken.tokens[chosen].astype(np.int64)),
        mask=None if taken.mask.all() else torch.from_numpy(taken.mask),
        types=torch.from_numpy(taken.types.astype(np.int64)),
        positions=torch.from_numpy(chosen),
        follows=None if taken.labels is None else torch.from_numpy(taken.labels),
    )
