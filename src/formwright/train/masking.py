"""Masked language modelling: other tokens are masked at every step, and only these are predicted."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.tasks.encode import Encoded, padded_batch
from formwright.tasks.tokeniser import Tokeniser
from formwright.train.streams import Batch, Shuffled, as_ids, as_mask

_HIDDEN, _RANDOM = 0.8, 0.1  # of the chosen tokens; the others stay, as in BERT


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


def masked(encoded: Encoded, rows: NDArray[np.int64], masking: Masking, rng: Generator) -> Batch:
    """Make a batch with masked tokens; labels are the original tokens, in the order of `positions`."""
    taken = padded_batch(encoded, rows)
    read, chosen = masking.hide(taken.tokens, taken.mask, rng)
    return Batch(
        inputs=as_ids(read),
        labels=as_ids(taken.tokens[chosen]),
        mask=as_mask(taken.mask),
        types=as_ids(taken.types),
        positions=torch.from_numpy(chosen),
        follows=None if taken.labels is None else torch.from_numpy(taken.labels),
    )
