"""Convolutions over tokens, and the gated linear unit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from formwright.arch.compute_blocks import BlockKind
from formwright.arch.operations.base import (
    Heads,
    Operation,
    Place,
    Relative,
    Swatch,
    heads_in_words,
    in_heads,
    listed,
    plural,
)
from formwright.arch.tensors import Axis, Factor, Product, Tensor, linear
from formwright.core.codec import Positive
from formwright.core.errors import Fault


def _kernel(name: str, kernel: int) -> str:
    return f"{name} convolution, kernel {kernel}"


def _separable(name: str, inputs: Factor, kernel: Factor, outputs: Axis) -> Iterator[Tensor]:
    """Declare a depthwise convolution and the linear map behind it."""
    yield Tensor(f"{name}.kernel", ((inputs,), (kernel,)))
    yield from linear(f"{name}.pointwise", (inputs,), outputs)


@dataclass(frozen=True)
class DynamicConvolution(Operation):
    """Span-based dynamic convolution: each token's kernel is generated from the span around it."""

    TYPE: ClassVar[str] = "dynamic-convolution"
    MODULE: ClassVar[str] = "formwright.nn.operations.convolution:SpanDynamicConvolution"
    PLACES: ClassVar[tuple[Place, ...]] = ("mixer",)
    SWATCH: ClassVar[Swatch] = Swatch("dynamic convolution", "#44AA99", "▲")
    PARALLEL_HEADS: ClassVar[bool] = True
    ELASTIC: ClassVar[Mapping[str, str]] = {"heads": "heads"}
    kernel: Positive
    heads: Heads
    head_width: Positive
    relative: Relative | None = None

    def faults(self, width: int, output: int) -> Iterator[Fault]:
        if self.relative is not None and (self.relative.axes != 1 or self.relative.values):
            yield Fault("relative", "must have one axis and no values in a convolution")

    def kind(self, output: int) -> tuple[Any, ...]:
        return (self.kernel,)  # the generator writes a whole kernel

    def tensors(self, inputs: Factor, outputs: Factor, memory: Factor) -> Iterator[Tensor]:
        heads, kernel = in_heads(self.heads, self.head_width), Factor(self.kernel, "kernel", "whole")
        yield from linear("query", (inputs,), heads)
        yield from linear("value", (inputs,), heads)
        yield from _separable("span", inputs, kernel, heads)
        yield from linear("generator", heads, (Factor(self.heads, "heads"), kernel))
        if self.relative is not None:
            yield from Relative(self.relative.rows).tensors("term.positions", self.head_width)
        yield from linear("output", heads, (outputs,))

    def products(self, width: int, output: int, tokens: int, memory: tuple[int, int]) -> Iterator[Product]:
        inner = self.heads * self.head_width
        yield Product("kernel", (tokens, width, self.kernel))  # the span
        yield Product("map", (tokens, inner, 3 * width + self.heads * self.kernel + output))
        yield Product("kernel", (tokens, inner, self.kernel))
        if self.relative is not None:
            yield Product("mix", (2, tokens, tokens, inner))

    def describe(self) -> str:
        relative = self.relative.describe() if self.relative is not None else ""
        return listed(_kernel("dynamic", self.kernel), heads_in_words(self.heads, self.head_width), relative)

    def block(self) -> tuple[int, ...]:
        return BlockKind.DYNAMIC_CONVOLUTION, self.heads * self.head_width, self.kernel


@dataclass(frozen=True)
class SeparableConvolution(Operation):
    """Depthwise then pointwise convolution, `stacked` times."""

    TYPE: ClassVar[str] = "separable-convolution"
    MODULE: ClassVar[str] = "formwright.nn.operations.convolution:StackedSeparable"
    PLACES: ClassVar[tuple[Place, ...]] = ("mixer", "branch")
    SWATCH: ClassVar[Swatch] = Swatch("separable convolution", "#117733", "◆")
    ELASTIC: ClassVar[Mapping[str, str]] = {"kernel": "kernel"}
    kernel: Positive
    stacked: Positive = 2

    def tensors(self, inputs: Factor, outputs: Factor, memory: Factor) -> Iterator[Tensor]:
        kernel = Factor(self.kernel, "kernel", "centred")
        between = [Factor(outputs.size, f"channels {index}") for index in range(self.stacked - 1)]
        for index, (below, above) in enumerate(zip([inputs, *between], [*between, outputs], strict=True)):
            yield from _separable(f"parts.{index}", below, kernel, (above,))

    def products(self, width: int, output: int, tokens: int, memory: tuple[int, int]) -> Iterator[Product]:
        for inputs, times in ((width, 1), (output, self.stacked - 1)):
            yield Product("kernel", (times, tokens, inputs, self.kernel))
            yield Product("map", (times, tokens, inputs, output))

    def describe(self) -> str:
        times = {1: "", 2: "twice"}.get(self.stacked, f"{self.stacked} times")
        return listed(_kernel("separable", self.kernel), times)

    def block(self) -> tuple[int, ...]:
        return BlockKind.SEPARABLE_CONVOLUTION, self.kernel, self.stacked


@dataclass(frozen=True)
class LightweightConvolution(Operation):
    """Depthwise convolution whose softmax-normalised kernels are shared within `heads` groups of channels.

    When `gated`, the input first passes a gated linear unit and the output a linear map.
    """

    TYPE: ClassVar[str] = "lightweight-convolution"
    MODULE: ClassVar[str] = "formwright.nn.operations.convolution:Lightweight"
    PLACES: ClassVar[tuple[Place, ...]] = ("mixer", "branch")
    SWATCH: ClassVar[Swatch] = Swatch("lightweight convolution", "#88CCEE", "△")
    ELASTIC: ClassVar[Mapping[str, str]] = {"kernel": "kernel"}
    kernel: Positive
    heads: Positive
    gated: bool = True

    def faults(self, width: int, output: int) -> Iterator[Fault]:
        if output % self.heads:
            yield Fault("heads", f"is {self.heads}, which does not divide the width {output}")
        if not self.gated and output != width:
            yield Fault("gated", f"is false: without a gate the width stays {width}, and cannot become {output}")

    def kind(self, output: int) -> tuple[Any, ...]:
        return output // self.heads, self.gated  # the channels that share a kernel

    @property
    def ordered(self) -> bool:
        return not self.gated  # the channels that share a kernel are neighbours

    def tensors(self, inputs: Factor, outputs: Factor, memory: Factor) -> Iterator[Tensor]:
        heads = Factor(self.heads, "heads")
        yield Tensor("kernel", ((heads,), (Factor(self.kernel, "kernel", "centred"),)))
        if self.gated:
            channels = (heads, Factor(outputs.size // self.heads, cut="whole"))
            yield from linear("gated.value", (inputs,), channels)
            yield from linear("gated.gate", (inputs,), channels)
            yield from linear("output", channels, (outputs,))

    def products(self, width: int, output: int, tokens: int, memory: tuple[int, int]) -> Iterator[Product]:
        yield Product("kernel", (tokens, output, self.kernel))
        if self.gated:
            yield Product("map", (tokens, 2 * width + output, output))

    def describe(self) -> str:
        return listed(_kernel("lightweight", self.kernel), plural(self.heads, "head"), "gated" if self.gated else "")

    def block(self) -> tuple[int, ...]:
        return BlockKind.LIGHTWEIGHT_CONVOLUTION, self.kernel, self.gated, self.heads


@dataclass(frozen=True)
class Convolution(Operation):
    """Plain convolution over tokens; with kernel 1 it is a dense layer."""

    TYPE: ClassVar[str] = "convolution"
    MODULE: ClassVar[str] = "formwright.nn.operations.convolution:PlainConvolution"
    PLACES: ClassVar[tuple[Place, ...]] = ("branch",)
    SWATCH: ClassVar[Swatch] = Swatch("convolution or dense map", "#999933", "■")
    ELASTIC: ClassVar[Mapping[str, str]] = {"kernel": "kernel"}
    kernel: Positive = 1

    def tensors(self, inputs: Factor, outputs: Factor, memory: Factor) -> Iterator[Tensor]:
        yield Tensor("kernel", ((outputs,), (inputs,), (Factor(self.kernel, "kernel", "centred"),)))
        yield Tensor("bias", ((outputs,),))

    def products(self, width: int, output: int, tokens: int, memory: tuple[int, int]) -> Iterator[Product]:
        yield Product("map", (tokens, self.kernel, width, output))

    def describe(self) -> str:
        return "dense" if self.kernel == 1 else f"convolution, kernel {self.kernel}"

    def block(self) -> tuple[int, ...]:
        return (BlockKind.DENSE,) if self.kernel == 1 else (BlockKind.CONVOLUTION, self.kernel)


@dataclass(frozen=True)
class GatedLinearUnit(Operation):
    """Two dense maps, one gating the other."""

    TYPE: ClassVar[str] = "gated-linear-unit"
    MODULE: ClassVar[str] = "formwright.nn.operations.convolution:GatedUnit"
    PLACES: ClassVar[tuple[Place, ...]] = ("branch",)
    SWATCH: ClassVar[Swatch] = Swatch("gated linear unit", "#AA4499", "◇")

    def tensors(self, inputs: Factor, outputs: Factor, memory: Factor) -> Iterator[Tensor]:
        yield from linear("value", (inputs,), (outputs,))
        yield from linear("gate", (inputs,), (outputs,))

    def products(self, width: int, output: int, tokens: int, memory: tuple[int, int]) -> Iterator[Product]:
        yield Product("map", (2, tokens, width, output))

    def describe(self) -> str:
        return self.SWATCH.name

    def block(self) -> tuple[int, ...]:
        return (BlockKind.GATED_LINEAR_UNIT,)
