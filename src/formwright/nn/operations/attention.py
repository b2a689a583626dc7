"""Multi-head attention, within a sentence and from decoder to encoder, and trained relative positions."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.hooks import RemovableHandle

from formwright.arch.ops import Attention, CrossAttention, Relative, RelativeAttention
from formwright.nn.settings import OwnStart, Settings, Spread
from formwright.nn.stack_context import StackContext, barred


def distances(tokens: int, rows: int, context: StackContext, device: torch.device) -> Tensor:
    """Give, for every query and key of a sentence, the row of a table that holds their distance: (tokens, tokens).

    The middle row is distance 0; distances beyond the table use its outermost rows.
    """
    place = torch.arange(tokens, device=device)
    return context.once(("distances", rows), lambda: (place[None, :] - place[:, None] + rows // 2).clamp(0, rows - 1))


def grid_places(context: StackContext, device: torch.device) -> Tensor:
    """Return the row and the column of every token of an image: (2, tokens); class tokens stand behind the last."""
    assert context.grid is not None, "two-dimensional positions occur in image stacks only"
    side, class_tokens = context.grid

    def compute() -> Tensor:
        patch = torch.arange(side * side, device=device)
        return F.pad(torch.stack((patch // side, patch % side)), (class_tokens, 0), value=side)

    return context.once("grid places", compute)


def grid_distances(rows: int, context: StackContext, device: torch.device) -> Tensor:
    """Return, for every token, the table rows of its distances to each row of the grid, then to each column.

    The result is (tokens, 2 x (side + 1)), for tables one after the other. Class tokens have row 0 of both tables.
    """
    places = grid_places(context, device)
    assert context.grid is not None
    line, reach = torch.arange(context.grid[0], device=device), rows // 2 - 1

    def compute() -> Tensor:
        apart = (line[None, :] - line[:, None]).clamp(-reach, reach) + reach + 1
        vertical, horizontal = F.pad(apart, (0, 1, 0, 1))[places]  # each (tokens, side + 1)
        return torch.cat((vertical, horizontal + rows), 1)

    return context.once(("grid", rows), compute)


def grid_members(context: StackContext, like: Tensor) -> Tensor:
    """Return 1 where a token is in a row of the grid, or in a column: (tokens, 2 x (side + 1))."""
    places = grid_places(context, like.device)
    assert context.grid is not None
    lines = context.grid[0] + 1
    return context.once(
        ("grid members", like.dtype), lambda: torch.cat([F.one_hot(place, lines) for place in places], 1).to(like.dtype)
    )


_LANES = 4  # one draw of 64 bits decides about four numbers, 16 bits each
_LEVELS = 1 << 16


def dropout(x: Tensor, probability: float, training: bool) -> Tensor:
    """Zero each number with the given probability, to 16 bits, and scale the others up; in training only.

    On a CPU torch's own takes a tenth of a training step, for drawing random numbers.
    """
    if not training or probability == 0.0:
        return x
    dropped = round(probability * _LEVELS)
    if x.device.type != "cpu" or not 0 < dropped < _LEVELS:
        return F.dropout(x, probability)
    draws = torch.empty(-(-x.numel() // _LANES), dtype=torch.int64).random_(-(1 << 63), None)
    lanes = draws.view(torch.int16)[: x.numel()].view(x.shape)  # uniform over all 16-bit numbers
    kept = lanes >= dropped - _LEVELS // 2
    return x * kept.to(x.dtype).mul_(_LEVELS / (_LEVELS - dropped))


_ROW_LANES = 16  # floats in a vector register; torch does not vectorise shorter rows


def softmax(scores: Tensor) -> Tensor:
    """Apply softmax over the last dimension, also fast for short rows on a CPU."""
    # an exported model must accept rows of any length, not only the traced one
    if torch.compiler.is_compiling() or scores.device.type != "cpu" or (columns := scores.shape[-1]) >= _ROW_LANES:
        return scores.softmax(-1)
    return F.pad(scores, (0, _ROW_LANES - columns), value=float("-inf")).softmax(-1)[..., :columns]


class RelativePositions(nn.Module, OwnStart):
    """The tables of one attention: for keys, and optionally for values.

    On a grid the vector between two tokens is that of their rows plus that of their columns. So queries meet the few
    rows and columns, not all keys, and weights are summed over them: for 14 by 14 patches a seventh of the work. An
    `eager` one looks up the vectors of all keys, so that the products are those that are counted.
    """

    def __init__(self, relative: Relative, head_width: int, *, eager: bool = False) -> None:
        super().__init__()
        self.axes, self.eager = relative.axes, eager
        shape = (relative.axes, relative.rows, head_width)
        self.keys = nn.Parameter(torch.empty(shape))
        self.values = nn.Parameter(torch.empty(shape)) if relative.values else None

    def start_spread(self, name: str, spread: Spread) -> float | None:
        return 1.0 if spread == "width" and name == "keys" else None  # like the keys they are added to

    def vectors(self, table: Tensor, tokens: int, context: StackContext) -> tuple[Tensor, Tensor | None]:
        """Look up the vectors between these tokens and every key: (queries, keys, head_width).

        On a large grid they are those of rows and columns, which are (keys, rows and columns) by the second result.
        """
        if self.axes == 1:
            apart = distances(tokens + context.past, table.shape[1], context, table.device)
            return table[0][apart[context.past :] if context.past else apart], None
        vectors = F.embedding(grid_distances(table.shape[1], context, table.device), table.flatten(0, 1))
        if self.eager:
            rows, columns = grid_places(context, table.device)
            return vectors[:, rows] + vectors[:, columns + vectors.shape[1] // 2], None
        members = grid_members(context, table)
        (keys, lines), width = members.shape, table.shape[2]
        if keys * width < lines * (keys + width):  # few keys, whose vectors are faster added up once
            return members @ vectors, None
        return vectors, members

    def scores(self, query: Tensor, context: StackContext) -> Tensor:
        """Multiply queries with the vectors of their distances: (batch, heads, queries, keys)."""
        vectors, members = self.vectors(self.keys, query.shape[2], context)
        scores = torch.einsum("bhqd,qkd->bhqk", query, vectors)
        return scores if members is None else scores @ members.T

    def weighted_values(self, weights: Tensor, context: StackContext) -> Tensor:
        """Sum the value vectors of all distances by attention weight: (batch, heads, queries, head_width)."""
        assert self.values is not None
        vectors, members = self.vectors(self.values, weights.shape[2], context)
        return torch.einsum("bhqk,qkd->bhqd", weights if members is None else weights @ members, vectors)


class PositionTerm(nn.Module):
    """The term softmax(Q R^T / sqrt(d)) V, which adds positions to a mixer that has none."""

    def __init__(self, relative: RelativeAttention) -> None:
        super().__init__()
        self.positions = RelativePositions(Relative(relative.rows), relative.head_width)

    def forward(self, query: Tensor, value: Tensor, context: StackContext) -> Tensor:
        return self.weights(query, context) @ value  # (batch, heads, tokens, head_width)

    def weights(self, query: Tensor, context: StackContext) -> Tensor:
        """Return softmax(Q R^T / sqrt(d)): (batch, heads, queries, keys)."""
        scores = self.positions.scores(query * query.shape[-1] ** -0.5, context)
        hidden = context.hidden(query.shape[2], query)
        return softmax(scores if hidden is None else scores + hidden)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Turn (batch, tokens, heads x head_width) into (batch, heads, tokens, head_width)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """Turn (batch, heads, tokens, head_width) into (batch, tokens, heads x head_width)."""
    return x.transpose(1, 2).flatten(2)


KeepMaps = Callable[[Tensor, Tensor, Tensor], None]  # of queries, keys and values, (batch, tokens, channels) each


@runtime_checkable
class ExposesAttentionMaps(Protocol):
    """An attention within a sentence that exposes its queries, keys and values, for lessons that compare them."""

    def hook_attention_maps(self, keep: KeepMaps) -> list[RemovableHandle]:
        """Call `keep` in every forward pass until the returned hooks are removed; none if it lacks one of the three."""


class SelfAttention(nn.Module, OwnStart):
    """Every token attends to every visible token; query, key and value come from one linear map.

    The map's rows are ordered head by head, so that a model with fewer heads has the leading rows.
    """

    def __init__(self, operation: Attention, width: int, output: int, memory: int, settings: Settings) -> None:
        super().__init__()
        self.heads, self.head_width = operation.heads, operation.head_width
        inner = operation.heads * operation.head_width
        self.query_key_value = nn.Linear(width, 3 * inner, bias=operation.bias)
        self.output = nn.Linear(inner, output, bias=operation.bias)
        square, relative = (operation.head_width, operation.head_width), operation.relative
        self.bilinear = nn.Parameter(torch.empty(square)) if operation.score == "wma" else None
        self.relative = (
            RelativePositions(relative, operation.head_width, eager=settings.eager) if relative is not None else None
        )
        self.dropout, self.eager = settings.dropout, settings.eager

    def hook_attention_maps(self, keep: KeepMaps) -> list[RemovableHandle]:
        def split(_: nn.Module, __: Any, packed: Tensor) -> None:
            query, key, value = packed.unflatten(-1, (self.heads, 3, self.head_width)).unbind(-2)
            keep(query.flatten(-2), key.flatten(-2), value.flatten(-2))

        return [self.query_key_value.register_forward_hook(split)]

    def finish_start(self) -> None:
        if self.bilinear is not None:  # near the scaled identity, where `wma` scores equal `sdp` scores
            size = len(self.bilinear)
            self.bilinear.add_(torch.eye(size), alpha=size**-0.5)

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        packed = self.query_key_value(x).unflatten(-1, (self.heads, 3, self.head_width))
        # unbind before transpose: the gradient then needs no second copy
        query, key, value = (part.transpose(1, 2) for part in packed.unbind(3))  # (batch, heads, tokens, head_width)
        key, value = context.joined(key, 2), context.joined(value, 2)
        scale = self.head_width**-0.5
        bias = None  # (batch, heads, queries, keys)
        if self.relative is not None:
            bias = self.relative.scores(query * scale, context)
        if self.bilinear is not None:
            query, scale = query @ self.bilinear, 1.0
        return self.output(join_heads(self._attend(query, key, value, scale, bias, context)))

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, scale: float, bias: Tensor | None, context: StackContext
    ) -> Tensor:
        probability, tokens = self.dropout if self.training else 0.0, query.shape[2]
        values = None if self.relative is None else self.relative.values
        if values is None and not self.eager and _has_kernel(query, bias, probability):
            if bias is None and context.mask is None and not context.past:  # the kernel's own causal mask is fastest
                return F.scaled_dot_product_attention(query, key, value, None, probability, context.causal, scale=scale)
            seen = context.visible(tokens, query.device) if bias is None else _sum(bias, context.hidden(tokens, query))
            return F.scaled_dot_product_attention(query, key, value, seen, probability, scale=scale)
        weights = _weights(query * scale, key, (bias, context.hidden(tokens, query)), probability)
        if values is None:
            return weights @ value
        return weights @ value + self.relative.weighted_values(weights, context)


def _has_kernel(query: Tensor, bias: Tensor | None, probability: float) -> bool:
    """Return whether torch's fused kernel is faster; on a CPU it is not with dropout or with a bias."""
    return query.device.type != "cpu" or (bias is None and not probability)


def _weights(query: Tensor, key: Tensor, biases: Iterable[Tensor | None], probability: float) -> Tensor:
    """Return the attention of scaled queries to keys: (batch, heads, queries, keys)."""
    return dropout(softmax(_sum(query @ key.transpose(-1, -2), *biases)), probability, True)


def _sum(scores: Tensor, *biases: Tensor | None) -> Tensor:
    for bias in biases:
        scores = scores if bias is None else scores + bias
    return scores


class EncoderAttention(nn.Module):
    """Every token of a decoder attends to the outputs of the last encoder layers, side by side."""

    def __init__(self, operation: CrossAttention, width: int, output: int, memory: int, settings: Settings) -> None:
        super().__init__()
        self.heads, self.head_width, self.layers = operation.heads, operation.head_width, operation.layers
        inner = operation.heads * operation.head_width
        self.query = nn.Linear(width, inner, bias=operation.bias)
        self.key_value = nn.Linear(memory, 2 * inner, bias=operation.bias)
        self.output = nn.Linear(inner, output, bias=operation.bias)
        self.dropout, self.eager = settings.dropout, settings.eager

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        query = split_heads(self.query(x), self.heads)
        packed = context.of_memory(lambda: self._packed(context.memory))
        key, value = (part.transpose(1, 2) for part in packed.unbind(3))  # (batch, heads, memory tokens, head_width)
        visible = None
        if context.memory_mask is not None:
            visible = context.memory_mask.repeat(1, self.layers)[:, None, None, :]
        probability = self.dropout if self.training else 0.0
        if not self.eager and _has_kernel(query, None, probability):
            return self.output(join_heads(F.scaled_dot_product_attention(query, key, value, visible, probability)))
        hidden = None if visible is None else barred(visible, query)
        weights = _weights(query * self.head_width**-0.5, key, [hidden], probability)
        return self.output(join_heads(weights @ value))

    def _packed(self, memory: tuple[Tensor, ...]) -> Tensor:
        """Return keys and values of the encoder's tokens: (batch, memory tokens, heads, 2, head_width)."""
        read = torch.cat(memory[-self.layers :], 1) if self.layers > 1 else memory[-1]
        return self.key_value(read).unflatten(-1, (self.heads, 2, self.head_width))
