"""What a model sees at one step, and where it comes from."""

from dataclasses import dataclass, fields, replace
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Tensors of one batch.

    `inputs` are token ids, pixels or frames, `mask` is true for real tokens, `labels` are what the loss wants.
    `positions` marks the tokens whose vocabulary scores a language model is asked for; `targets` are what a decoder
    reads. `follows` says for pairs of sentences whether the second follows the first, where a model is to learn that.
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
        """Give the same batch on a device; itself where it is there already."""
        if self.inputs.device == device:
            return self
        tensors = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: tensor.to(device) for name, tensor in tensors.items() if tensor is not None})


class Stream(Protocol):
    """Give the batch of any step; the same step always has the same batch, whoever asks and whenever."""

    def batch(self, step: int) -> Batch: ...
