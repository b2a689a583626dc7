"""Small changes of training inputs, drawn again at every step: the same step always has the same ones.

The registry of changes is `formwright.train.hyperparameters.AUGMENTATIONS`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from numpy.random import Generator
from torch import Tensor
from torch.nn import functional as F

from formwright.core.rng import derive
from formwright.train.hyperparameters import AUGMENTATIONS
from formwright.train.streams import Batch, Stream

_SHIFT = 8  # a picture moves by up to its side divided by this


@dataclass(frozen=True)
class Augmented:
    """The batches of another stream with changed inputs; `names` are those of `AUGMENTATIONS`."""

    stream: Stream
    seed: int
    names: tuple[str, ...]

    def batch(self, step: int) -> Batch:
        """Return the batch of a step."""
        batch, rng = self.stream.batch(step), derive(self.seed, "augment", step)
        inputs = batch.inputs
        for change in self._changes:
            inputs = change(inputs, rng)
        return replace(batch, inputs=inputs)

    @cached_property
    def _changes(self) -> tuple[Callable[..., Any], ...]:
        return tuple(AUGMENTATIONS.get(name) for name in self.names)


def shift(pictures: Tensor, rng: Generator) -> Tensor:
    """Move each picture (batch, channels, side, side) up to an eighth of its side; zeros follow at its edge."""
    most = max(1, pictures.shape[-1] // _SHIFT)
    # a window of each picture within a frame of zeros
    framed = F.pad(pictures, (most,) * 4)
    starts = torch.from_numpy(rng.integers(0, 2 * most + 1, (len(pictures), 2, 1)))
    down, right = (starts + torch.arange(pictures.shape[-1])).unbind(1)  # (batch, side)
    found = framed[torch.arange(len(pictures))[:, None, None], :, down[:, :, None], right[:, None, :]]
    return found.movedim(-1, 1).contiguous()


def flip(pictures: Tensor, rng: Generator) -> Tensor:
    """Mirror each picture, left to right, with a probability of one half."""
    chosen = torch.from_numpy(rng.integers(0, 2, len(pictures)).astype(bool))
    return torch.where(chosen[:, None, None, None], pictures.flip(-1), pictures)
