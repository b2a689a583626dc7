"""Trained relative positions: tables of vectors, one for each distance between two tokens."""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.arch.ops import Relative, RelativeAttention
from formwright.nn.context import Context


def distances(tokens: int, rows: int, context: Context, device: torch.device) -> Tensor:
    """Give, for every query and key of a sentence, the row of a table that holds their distance: (tokens, tokens).

    The middle row is distance 0; what is farther apart than the table reaches shares its outermost rows.
    """
    place = torch.arange(tokens, device=device)
    return context.once(("distances", rows), lambda: (place[None, :] - place[:, None] + rows // 2).clamp(0, rows - 1))


def grid_distances(tokens: int, rows: int, context: Context, device: torch.device) -> Tensor:
    """Give the rows of vertical and horizontal distance between patches: (2, tokens, tokens); 0 is a class token's."""
    assert context.grid is not None, "two-dimensional positions stand in image stacks only"
    side, class_tokens = context.grid
    return context.once(("grid", rows), lambda: _grid(rows, side, class_tokens, device))


def _grid(rows: int, side: int, class_tokens: int, device: torch.device) -> Tensor:
    reach = rows // 2 - 1
    patch = torch.arange(side * side, device=device)
    place = torch.stack((patch // side, patch % side))  # (2, patches)
    apart = (place[:, None, :] - place[:, :, None]).clamp(-reach, reach) + reach + 1
    return F.pad(apart, (class_tokens, 0, class_tokens, 0))


_LANES = 16  # numbers that a processor's registers hold; torch takes shorter rows one number after the other


def softmax(scores: Tensor) -> Tensor:
    """Normalise the last dimension, short rows as fast as long ones."""
    # an exported model serves rows of any length, not only those that it was traced with
    if torch.compiler.is_compiling() or scores.device.type != "cpu" or (columns := scores.shape[-1]) >= _LANES:
        return scores.softmax(-1)
    return F.pad(scores, (0, _LANES - columns), value=float("-inf")).softmax(-1)[..., :columns]


class RelativePositions(nn.Module):
    """Hold the tables of one attention: for keys, and for values where wanted."""

    CENTRED: ClassVar = {"keys": 1, "values": 1}

    def __init__(self, relative: Relative, head_width: int) -> None:
        super().__init__()
        self.axes = relative.axes
        shape = (relative.axes, relative.rows, head_width)
        self.keys = nn.Parameter(torch.empty(shape))
        self.values = nn.Parameter(torch.empty(shape)) if relative.values else None

    def vectors(self, table: Tensor, tokens: int, context: Context) -> Tensor:
        """Look up the vector between each of these tokens and every key: (queries, keys, head_width)."""
        if self.axes == 1:
            apart = distances(tokens + context.past, table.shape[1], context, table.device)
            return table[0][apart[context.past :] if context.past else apart]
        vertical, horizontal = grid_distances(tokens, table.shape[1], context, table.device)
        return table[0][vertical] + table[1][horizontal]

    def scores(self, query: Tensor, context: Context) -> Tensor:
        """Multiply queries with the vectors of their distances: (batch, heads, queries, keys)."""
        return torch.einsum("bhqd,qkd->bhqk", query, self.vectors(self.keys, query.shape[2], context))

    def weighted_values(self, weights: Tensor, context: Context) -> Tensor:
        """Sum the value vectors of all distances by attention weight: (batch, heads, queries, head_width)."""
        assert self.values is not None
        return torch.einsum("bhqk,qkd->bhqd", weights, self.vectors(self.values, weights.shape[2], context))


class PositionTerm(nn.Module):
    """The term softmax(Q R^T / sqrt(d)) V, which carries position beside a mixer that has none."""

    def __init__(self, relative: RelativeAttention) -> None:
        super().__init__()
        self.positions = RelativePositions(Relative(relative.rows), relative.head_width)

    def forward(self, query: Tensor, value: Tensor, context: Context) -> Tensor:
        return self.weights(query, context) @ value  # (batch, heads, tokens, head_width)

    def weights(self, query: Tensor, context: Context) -> Tensor:
        """Give softmax(Q R^T / sqrt(d)): (batch, heads, queries, keys)."""
        scores = self.positions.scores(query * query.shape[-1] ** -0.5, context)
        hidden = context.hidden(query.shape[2], query)
        return softmax(scores if hidden is None else scores + hidden)
