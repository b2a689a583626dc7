"""From an operation to the module that runs it."""

from torch import Tensor, nn

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
from formwright.nn.attention import EncoderAttention, SelfAttention
from formwright.nn.context import Context
from formwright.nn.convolution import GatedUnit, Lightweight, PlainConvolution, SpanDynamicConvolution, StackedSeparable
from formwright.nn.opgraph import OpGraphAttention
from formwright.nn.settings import Settings
from formwright.nn.transform import TransformMixer


class PassOn(nn.Module):
    """Hand the input on unchanged."""

    def forward(self, x: Tensor, context: Context) -> Tensor:
        return x


def mixer(operation: Operation, width: int, output: int, memory: int, settings: Settings) -> nn.Module:
    """Build the module of an operation from `width` to `output`; `memory` is the encoder's width."""
    match operation:
        case Attention():
            return SelfAttention(operation, width, output, settings)
        case CrossAttention():
            return EncoderAttention(operation, width, output, memory, settings)
        case Transform():
            return TransformMixer(operation, width, output)
        case DynamicConvolution():
            return SpanDynamicConvolution(operation, width, output)
        case SeparableConvolution():
            return StackedSeparable(operation, width, output)
        case LightweightConvolution():
            return Lightweight(operation, width, output)
        case Convolution():
            return PlainConvolution(operation, width, output)
        case GatedLinearUnit():
            return GatedUnit(operation, width, output)
        case OpGraph():
            return OpGraphAttention(operation, width, output, eager=settings.eager)
        case Identity():
            return PassOn()
