"""A teacher's hidden states where its blocks end: what blocks of a student begin with, and what they are to match."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from formwright.nn.context import Context
from formwright.nn.transformer import Transformer
from formwright.train.batch import Batch


@dataclass(frozen=True)
class States:
    """What a teacher says of one batch at some of its boundaries, and the context in which layers read it."""

    hidden: tuple[Tensor, ...]  # (batch, tokens, width) each
    context: Context

    def distance(self, found: Tensor, boundary: int) -> Tensor:
        """Give the mean squared distance from what the teacher says at a boundary, at real tokens."""
        squares = (found - self.hidden[boundary]).square().mean(-1)
        mask = self.context.mask
        return squares.mean() if mask is None else squares[mask].mean()

    def real(self, boundary: int) -> Tensor:
        """Give the vectors of real tokens, (tokens, width)."""
        found, mask = self.hidden[boundary], self.context.mask
        return found.flatten(0, 1) if mask is None else found[mask]


@torch.no_grad()
def states(teacher: Transformer, batch: Batch, ends: Sequence[int]) -> States:
    """Run a teacher as far as the last of some layers, and give what comes out of each; 0 is its embedding."""
    stack = teacher.encoder
    assert stack is not None
    mask = None if batch.mask is None else batch.mask.bool()
    context = Context(mask)
    x = stack.embedding(batch.inputs, context, batch.types)
    found = {0: x}
    for number, layer in enumerate(stack.layers[: max(ends)], start=1):
        x = layer(x, context)
        found[number] = x
    if stack.final_norm is not None and max(ends) == len(stack.layers):
        found[len(stack.layers)] = stack.final_norm(x)
    return States(tuple(found[end] for end in ends), context)
