"""Multi-head attention: to the sentence itself, and of a decoder to its encoder."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.arch.ops import Attention, CrossAttention
from formwright.nn.context import Context, barred
from formwright.nn.dropout import dropout
from formwright.nn.relative import RelativePositions, softmax
from formwright.nn.settings import Settings


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Turn (batch, tokens, heads x head_width) into (batch, heads, tokens, head_width)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """Turn (batch, heads, tokens, head_width) into (batch, tokens, heads x head_width)."""
    return x.transpose(1, 2).flatten(2)


class SelfAttention(nn.Module):
    """Every token attends to every visible token; query, key and value come from one linear map.

    The map's rows are ordered head by head, so that the first heads of a model are the first rows of its weights.
    """

    def __init__(self, operation: Attention, width: int, output: int, settings: Settings) -> None:
        super().__init__()
        self.heads, self.head_width = operation.heads, operation.head_width
        inner = operation.heads * operation.head_width
        self.query_key_value = nn.Linear(width, 3 * inner, bias=operation.bias)
        self.output = nn.Linear(inner, output, bias=operation.bias)
        self.bilinear = (
            nn.Parameter(torch.empty(operation.head_width, operation.head_width)) if operation.score == "wma" else None
        )
        self.relative = (
            RelativePositions(operation.relative, operation.head_width) if operation.relative is not None else None
        )
        self.dropout, self.eager = settings.dropout, settings.eager

    def forward(self, x: Tensor, context: Context) -> Tensor:
        packed = self.query_key_value(x).unflatten(-1, (self.heads, 3, self.head_width))
        # unbound before it is transposed: the gradient then needs no second copy
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
        self, query: Tensor, key: Tensor, value: Tensor, scale: float, bias: Tensor | None, context: Context
    ) -> Tensor:
        probability, tokens = self.dropout if self.training else 0.0, query.shape[2]
        values = None if self.relative is None else self.relative.values
        if values is None and not self.eager and _has_kernel(query, bias, probability):
            if (
                bias is None and context.mask is None and not context.past
            ):  # the kernel's own causal mask is the fastest
                return F.scaled_dot_product_attention(query, key, value, None, probability, context.causal, scale=scale)
            seen = context.visible(tokens, query.device) if bias is None else _sum(bias, context.hidden(tokens, query))
            return F.scaled_dot_product_attention(query, key, value, seen, probability, scale=scale)
        weights = _weights(query * scale, key, (bias, context.hidden(tokens, query)), probability)
        if values is None:
            return weights @ value
        return weights @ value + self.relative.weighted_values(weights, context)


def _has_kernel(query: Tensor, bias: Tensor | None, probability: float) -> bool:
    """Tell whether torch's kernel is the faster way; on processors it is not with dropout or with a bias."""
    return query.device.type != "cpu" or (bias is None and not probability)


def _weights(query: Tensor, key: Tensor, biases: Iterable[Tensor | None], probability: float) -> Tensor:
    """Give the attention of scaled queries to keys: (batch, heads, queries, keys)."""
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

    def forward(self, x: Tensor, context: Context) -> Tensor:
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
        """Give keys and values of the encoder's tokens: (batch, memory tokens, heads, 2, head_width)."""
        read = torch.cat(memory[-self.layers :], 1) if self.layers > 1 else memory[-1]
        return self.key_value(read).unflatten(-1, (self.heads, 2, self.head_width))
