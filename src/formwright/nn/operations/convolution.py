"""Convolutions over tokens. Padding counts as zero, and a causal convolution sees the past only."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.arch.ops import (
    Convolution,
    DynamicConvolution,
    GatedLinearUnit,
    LightweightConvolution,
    RelativeAttention,
    SeparableConvolution,
)
from formwright.nn.operations.attention import PositionTerm, join_heads, softmax, split_heads
from formwright.nn.settings import OwnStart, Settings, Spread
from formwright.nn.stack_context import StackContext


def pad_tokens(x: Tensor, kernel: int, context: StackContext) -> Tensor:
    """Put zeros, or what was read before, around (batch, tokens, channels) so that a convolution keeps their number."""
    if context.reads_on:
        near = context.joined(x, 1, most=kernel - 1)
        return F.pad(near, (0, 0, kernel - 1 + x.shape[1] - near.shape[1], 0))
    before = kernel - 1 if context.causal else (kernel - 1) // 2
    return F.pad(x, (0, 0, before, kernel - 1 - before))


def depthwise(x: Tensor, kernels: Tensor, context: StackContext) -> Tensor:
    """Convolve each channel of (batch, tokens, channels) with its own kernel from (channels, kernel)."""
    padded = pad_tokens(context.real(x), kernels.shape[-1], context)
    picture = padded[:, None].permute(0, 3, 1, 2)  # one pixel high: for channels that come last torch is faster so
    return F.conv2d(picture, kernels[:, None, None], groups=kernels.shape[0])[:, :, 0].transpose(1, 2)


def slanted(rows: Tensor, start: int) -> Tensor:
    """Move row t of (..., tokens, columns) by t to the right, and give the square of columns that begins at `start`.

    What is looked up by distance comes out by key, without a copy: a row of one column less begins one place earlier.
    """
    tokens, columns = rows.shape[-2:]
    if torch.compiler.is_compiling() or start > tokens:  # an exported model serves rows of any length
        rows = F.pad(rows, (0, 0, 0, 1))  # the last rows are read beyond their end
    flat = rows.flatten(-2)[..., start : start + tokens * (columns - 1)]
    return flat.unflatten(-1, (tokens, columns - 1))[..., :tokens]


class GatedUnit(nn.Module):
    """One linear map gated by the sigmoid of another."""

    def __init__(self, operation: GatedLinearUnit, width: int, output: int, memory: int, settings: Settings) -> None:
        super().__init__()
        self.value = nn.Linear(width, output)
        self.gate = nn.Linear(width, output)

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        return self.value(x) * self.gate(x).sigmoid()


class PlainConvolution(nn.Module, OwnStart):
    """A convolution over all channels; with kernel 1 a linear map."""

    def __init__(self, operation: Convolution, width: int, output: int, memory: int, settings: Settings) -> None:
        super().__init__()
        self.kernel = nn.Parameter(torch.empty(output, width, operation.kernel))
        self.bias = nn.Parameter(torch.empty(output))

    def start_spread(self, name: str, spread: Spread) -> float | None:
        return float((self.kernel.shape[1] * self.kernel.shape[2]) ** -0.5)  # keeps the scale of the input

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        if self.kernel.shape[-1] == 1:
            return F.linear(x, self.kernel[:, :, 0], self.bias)
        padded = pad_tokens(context.real(x), self.kernel.shape[-1], context)
        return F.conv1d(padded.transpose(1, 2), self.kernel, self.bias).transpose(1, 2)


class DepthwiseSeparable(nn.Module, OwnStart):
    """A depthwise convolution, then a linear map over channels."""

    def __init__(self, kernel: int, width: int, output: int) -> None:
        super().__init__()
        self.kernel = nn.Parameter(torch.empty(width, kernel))
        self.pointwise = nn.Linear(width, output)

    def start_spread(self, name: str, spread: Spread) -> float | None:
        return float(self.kernel.shape[-1] ** -0.5)  # keeps the scale of the input

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        return self.pointwise(depthwise(x, self.kernel, context))


class StackedSeparable(nn.Module):
    """Depthwise-separable convolutions one after the other, with ReLU in between."""

    def __init__(
        self, operation: SeparableConvolution, width: int, output: int, memory: int, settings: Settings
    ) -> None:
        super().__init__()
        widths = [width] + [output] * operation.stacked
        self.parts = nn.ModuleList(
            DepthwiseSeparable(operation.kernel, widths[index], output) for index in range(operation.stacked)
        )

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        for index, part in enumerate(self.parts):
            x = part(x.relu() if index else x, context)
        return x


class Lightweight(nn.Module, OwnStart):
    """A convolution with one softmax-normalised kernel for each head's channels, behind a gated unit where wanted."""

    def __init__(
        self, operation: LightweightConvolution, width: int, output: int, memory: int, settings: Settings
    ) -> None:
        super().__init__()
        self.kernel = nn.Parameter(torch.empty(operation.heads, operation.kernel))
        self.gated = GatedUnit(GatedLinearUnit(), width, output, memory, settings) if operation.gated else None
        self.output = nn.Linear(output, output) if operation.gated else None

    def start_spread(self, name: str, spread: Spread) -> float | None:
        return 1.0  # logits of a softmax: different kernels from the start

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        x = self.gated(x, context) if self.gated is not None else x
        kernels = self.kernel.softmax(-1).repeat_interleave(x.shape[-1] // self.kernel.shape[0], 0)
        x = depthwise(x, kernels, context)
        return self.output(x) if self.output is not None else x


class SpanDynamicConvolution(nn.Module):
    """A convolution whose kernel at each token comes from the span around it (ConvBERT), plus a position term."""

    def __init__(self, operation: DynamicConvolution, width: int, output: int, memory: int, settings: Settings) -> None:
        super().__init__()
        self.heads, self.kernel_size = operation.heads, operation.kernel
        inner = operation.heads * operation.head_width
        self.query = nn.Linear(width, inner)
        self.value = nn.Linear(width, inner)
        self.span = DepthwiseSeparable(operation.kernel, width, inner)
        self.generator = nn.Linear(inner, operation.heads * operation.kernel)
        self.term = None
        if operation.relative is not None:
            shape = RelativeAttention(operation.heads, operation.head_width, operation.relative.rows)
            self.term = PositionTerm(shape)
        self.output = nn.Linear(inner, output)

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        if context.reads_on:  # the kernels of all tokens are one matrix, which is computed again
            return self._mixed(context.joined(x, 1), context.whole())[:, -x.shape[1] :]
        return self._mixed(x, context)

    def _mixed(self, x: Tensor, context: StackContext) -> Tensor:
        query, value = self.query(x), split_heads(context.real(self.value(x)), self.heads)
        kernels = split_heads(self.generator(self.span(x, context) * query), self.heads)
        # the kernel of each token, softmax-normalised, is laid over the tokens that it weighs, as a matrix over tokens:
        # one product with it is faster than many with windows as narrow as a kernel
        apart = F.pad(kernels, (0, kernels.shape[-2]), value=float("-inf"))  # weight 0 between the kernels of two rows
        start = self.kernel_size - 1 if context.causal else (self.kernel_size - 1) // 2
        weights = slanted(softmax(apart), start)  # (batch, heads, queries, keys)
        if self.term is not None:
            weights = weights + self.term.weights(split_heads(query, self.heads), context)
        return self.output(join_heads(weights @ value))
