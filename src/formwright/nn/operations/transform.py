"""Fixed transforms over tokens and features."""

import math
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from formwright.arch.ops import Transform
from formwright.nn.operations.attention import PositionTerm, join_heads, split_heads
from formwright.nn.settings import Settings
from formwright.nn.stack_context import StackContext


@lru_cache(maxsize=64)
def _features(kind: str, width: int) -> NDArray[np.float64]:
    """Return the matrix that transforms features: (width, width), or the cosine and sine parts side by side.

    An array, because a cached tensor would keep the mode (inference, tracing) of its first caller.
    """
    place = np.arange(width)
    if kind == "dct":
        return 2 * np.cos(np.outer(2 * place + 1, place) % (4 * width) * (np.pi / (2 * width)))
    angle = np.outer(place, place) % width * (2 * np.pi / width)
    return np.concatenate((np.cos(angle), np.sin(angle)), 1)


class TransformMixer(nn.Module):
    """Apply the real part of a two-dimensional Fourier transform, or a cosine transform (type II), not normalised.

    With relative positions the sum of transform and position term passes a linear map, as in FlexiBERT. Transforms are
    dense products: sentences of a batch differ in length, so no fast transform serves them all at once, and at the
    widths of transformers a product is about as fast.
    """

    def __init__(self, operation: Transform, width: int, output: int, memory: int, settings: Settings) -> None:
        super().__init__()
        self.kind = operation.transform
        relative = operation.relative
        self.heads = relative.heads if relative is not None else 0
        if relative is not None:
            self.query = nn.Linear(width, width)
            self.value = nn.Linear(width, width)
            self.term = PositionTerm(relative)
            self.output = nn.Linear(width, output)

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        mixed = self._transform(context.real(x), context)
        if not self.heads:
            return mixed
        query, value = split_heads(self.query(x), self.heads), split_heads(self.value(x), self.heads)
        return self.output(mixed + join_heads(self.term(query, value, context)))

    def _transform(self, x: Tensor, context: StackContext) -> Tensor:
        features = x @ torch.as_tensor(_features(self.kind, x.shape[-1]), dtype=x.dtype, device=x.device)
        tokens = context.once((self.kind, x.dtype), lambda: self._tokens(x, context))
        if self.kind == "dct":
            return tokens @ features
        even, odd = features.chunk(2, -1)
        cosine, sine = tokens.unbind(0)
        return cosine @ even - sine @ odd

    def _tokens(self, x: Tensor, context: StackContext) -> Tensor:
        """Return each sentence's matrix over tokens: (batch or 1, tokens, tokens), for `dft` both cosine and sine."""
        place, length = context.positions(x), context.lengths(x)[:, :, None]
        row, column = place[:, :, None], place[:, None, :]
        if self.kind == "dct":
            turns = (row * (2 * column + 1)) % (4 * length)
            return 2 * (turns.to(torch.float64) * math.pi / (2 * length)).cos().to(x.dtype)
        turns = (row * column) % length  # whole turns removed before rounding
        angle = turns.to(torch.float64) * (2 * math.pi) / length
        return torch.stack((angle.cos().to(x.dtype), angle.sin().to(x.dtype)))
