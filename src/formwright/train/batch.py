"""What a model sees at one step, and where it comes from."""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Tensors of one batch.

    `inputs` are token ids, pixels or frames, `mask` is true for real tokens, `labels` are what the loss wants.
    `positions` marks the tokens whose vocabulary scores a language model is asked for; `targets` are what a decoder
    reads.
    """

    inputs: Tensor
    labels: Tensor
    mask: Tensor | None = None
    types: Tensor | None = None
    targets: Tensor | None = None
    targets_mask: Tensor | None = None
    positions: Tensor | None = None


class Stream(Protocol):
    """Give the batch of any step; the same step always has the same batch, whoever asks and whenever."""

    def batch(self, step: int) -> Batch: ...
