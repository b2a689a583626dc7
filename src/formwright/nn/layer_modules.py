"""From operations and layers of a card to the modules that run them."""

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.arch.layers import Block, Cell, Junction, Layer
from formwright.arch.ops import (
    Attention,
    Convolution,
    CrossAttention,
    DynamicConvolution,
    GatedLinearUnit,
    Identity,
    LightweightConvolution,
    Operation,
    OpGraph,
    SeparableConvolution,
    Transform,
)
from formwright.nn.attention import EncoderAttention, PositionTerm, SelfAttention, dropout, join_heads, split_heads
from formwright.nn.convolution import GatedUnit, Lightweight, PlainConvolution, SpanDynamicConvolution, StackedSeparable
from formwright.nn.opgraph import OpGraphAttention
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

    def __init__(self, operation: Transform, width: int, output: int) -> None:
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


class PassOn(nn.Module):
    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        return x


def mixer(operation: Operation, width: int, output: int, memory: int, settings: Settings) -> nn.Module:
    """Build the module of an operation from `width` to `output`; `memory` is the encoder's width."""
    if isinstance(operation, Attention):
        return SelfAttention(operation, width, output, settings)
    if isinstance(operation, CrossAttention):
        return EncoderAttention(operation, width, output, memory, settings)
    if isinstance(operation, OpGraph):
        return OpGraphAttention(operation, width, output, eager=settings.eager)
    return _PLAIN[type(operation)](operation, width, output)


_PLAIN: dict[type[Operation], Callable[[Any, int, int], nn.Module]] = {
    Transform: TransformMixer,
    DynamicConvolution: SpanDynamicConvolution,
    SeparableConvolution: StackedSeparable,
    LightweightConvolution: Lightweight,
    Convolution: PlainConvolution,
    GatedLinearUnit: GatedUnit,
    Identity: lambda *_: PassOn(),
}  # modules that know no settings
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "relu": F.relu,
    "swish": F.silu,
    "leaky-relu": F.leaky_relu,
    "squared-relu": lambda x: F.relu(x).square(),
    "tanh": torch.tanh,
}


class FeedForward(nn.Module):
    """Linear maps through a stack of widths and back, with an activation between them."""

    def __init__(self, widths: tuple[int, ...], activation: str) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(below, above) for below, above in pairwise(widths))
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        *hidden, last = self.maps
        for linear in hidden:
            x = self.activation(linear(x))
        return last(x)


class BlockLayer(nn.Module):
    """The ordinary layer: mixer, cross-attention, feed-forward stack, each added to its input and normalised."""

    def __init__(self, block: Block, memory: int, settings: Settings) -> None:
        super().__init__()
        self.before = block.norm == "pre"
        self.mixer: nn.Module | None = None
        self.cross: nn.Module | None = None
        self.feed_forward: nn.Module | None = None
        if not isinstance(block.mixer, Identity):
            self.mixer = mixer(block.mixer, block.width, block.width, memory, settings)
            self.mixer_norm = nn.LayerNorm(block.width, settings.norm_epsilon)
        if block.cross is not None:
            self.cross = mixer(block.cross, block.width, block.width, memory, settings)
            self.cross_norm = nn.LayerNorm(block.width, settings.norm_epsilon)
        if block.feed_forward:
            self.feed_forward = FeedForward((block.width, *block.feed_forward, block.width), block.activation)
            self.feed_forward_norm = nn.LayerNorm(block.width, settings.norm_epsilon)
        self.dropout = settings.dropout

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        if self.mixer is not None:
            x = self._added(x, self.mixer, self.mixer_norm, context)
        if self.cross is not None:
            x = self._added(x, self.cross, self.cross_norm, context)
        if self.feed_forward is not None:
            x = self._added(x, self.feed_forward, self.feed_forward_norm, context)
        return x

    def _added(self, x: Tensor, part: nn.Module, norm: nn.Module, context: StackContext) -> Tensor:
        if self.before:
            return x + dropout(part(norm(x), context), self.dropout, self.training)
        return norm(x + dropout(part(x, context), self.dropout, self.training))


class JunctionLayer(nn.Module):
    """Two branches of a cell and how they are joined."""

    def __init__(self, junction: Junction, widths: tuple[int, ...], memory: int, settings: Settings) -> None:
        super().__init__()
        self.junction = junction
        self.norms = nn.ModuleDict(
            {str(state): nn.LayerNorm(widths[state], settings.norm_epsilon) for state in sorted(junction.normed_states)}
        )
        self.operations = nn.ModuleList(
            mixer(branch.operation, widths[branch.input], branch.width, memory, settings)
            for branch in junction.branches
        )
        self.dropout = settings.dropout

    def forward(self, states: list[Tensor], context: StackContext) -> Tensor:
        normed = {state: norm(states[int(state)]) for state, norm in self.norms.items()}
        results = []
        for branch, operation in zip(self.junction.branches, self.operations, strict=True):
            y = operation(normed[str(branch.input)] if branch.norm else states[branch.input], context)
            y = ACTIVATIONS[branch.activation](y) if branch.activation is not None else y
            results.append(y if isinstance(branch.operation, Identity) else dropout(y, self.dropout, self.training))
        if len(results) == 1:
            return results[0]
        if self.junction.combine == "concatenate":
            return torch.cat(results, -1)
        filler = 0.0 if self.junction.combine == "add" else 1.0
        left, right = (F.pad(result, (0, self.junction.width - result.shape[-1]), value=filler) for result in results)
        return left + right if self.junction.combine == "add" else left * right


class CellLayer(nn.Module):
    """A small graph of junctions; the last one is the output."""

    def __init__(self, cell: Cell, memory: int, settings: Settings) -> None:
        super().__init__()
        self.junctions = nn.ModuleList(
            JunctionLayer(junction, cell.state_widths, memory, settings) for junction in cell.junctions
        )

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        states = [x]
        for junction in self.junctions:
            states.append(junction(states, context))
        return states[-1]


def layer_module(layer: Layer, memory: int, settings: Settings) -> nn.Module:
    """Build the module of a layer; `memory` is the width of the encoder that it may attend to."""
    if isinstance(layer, Block):
        return BlockLayer(layer, memory, settings)
    return CellLayer(layer, memory, settings)
