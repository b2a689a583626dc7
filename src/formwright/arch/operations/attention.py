"""Attention, within a sentence and from a decoder to its encoder."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

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
from formwright.arch.tensors import Factor, Product, Tensor, linear
from formwright.core.codec import Positive

_SCORES = {"sdp": "scaled dot product", "wma": "weighted multiplicative"}


@dataclass(frozen=True)
class Attention(Operation):
    """Multi-head self-attention; `sdp` scores are scaled dot products, `wma` scores put a trained matrix in between."""

    TYPE: ClassVar[str] = "attention"
    MODULE: ClassVar[str] = "formwright.nn.operations.attention:SelfAttention"
    PLACES: ClassVar[tuple[Place, ...]] = ("mixer", "branch")
    SWATCH: ClassVar[Swatch] = Swatch("self-attention", "#332288", "●")
    PARALLEL_HEADS: ClassVar[bool] = True
    INPUT_MAPS: ClassVar[tuple[str, ...]] = ("query_key_value",)
    ELASTIC: ClassVar[Mapping[str, str]] = {"heads": "heads"}
    heads: Heads
    head_width: Positive
    score: Literal["sdp", "wma"] = "sdp"
    relative: Relative | None = None
    bias: bool = True

    def kind(self, output: int) -> tuple[Any, ...]:
        relative = self.relative
        # on a grid the rows of a table are places, which move with the grid
        tables = relative and (relative.axes, relative.rows if relative.axes > 1 else None)
        return self.score, self.bias, tables

    def tensors(self, inputs: Factor, outputs: Factor, memory: Factor) -> Iterator[Tensor]:
        width = (Factor(self.head_width, "head width"),)
        if self.score == "wma":
            yield Tensor("bilinear", (width, width))
        yield from linear("query_key_value", (inputs,), in_heads(self.heads, self.head_width, 3), self.bias)
        yield from linear("output", in_heads(self.heads, self.head_width), (outputs,), self.bias)
        if self.relative is not None:
            yield from self.relative.tensors("relative", self.head_width)

    def products(self, width: int, output: int, tokens: int, memory: tuple[int, int]) -> Iterator[Product]:
        inner = self.heads * self.head_width
        yield Product("map", (tokens, inner, 3 * width + output))
        if self.score == "wma":
            yield Product("map", (tokens, inner, self.head_width))
        tables = 0 if self.relative is None else 1 + self.relative.values
        yield Product("mix", (2 + tables, tokens, tokens, inner))  # scores, weighted values, and those of distances

    def describe(self) -> str:
        relative = self.relative.describe() if self.relative is not None else ""
        heads = heads_in_words(self.heads, self.head_width)
        return listed(heads, _SCORES[self.score], relative, "" if self.bias else "no bias")

    def describe_alone(self) -> str:
        return f"{self.SWATCH.name}, {self.describe()}"

    def block(self) -> tuple[int, ...]:
        return BlockKind.ATTENTION, self.heads * self.head_width, tuple(_SCORES).index(self.score)


@dataclass(frozen=True)
class CrossAttention(Operation):
    """Attention of a decoder to the outputs of the last `layers` encoder layers, side by side."""

    TYPE: ClassVar[str] = "cross-attention"
    MODULE: ClassVar[str] = "formwright.nn.operations.attention:EncoderAttention"
    PLACES: ClassVar[tuple[Place, ...]] = ("branch", "cross")
    SWATCH: ClassVar[Swatch] = Swatch("cross-attention", "#CC6677", "○")
    PARALLEL_HEADS: ClassVar[bool] = True
    INPUT_MAPS: ClassVar[tuple[str, ...]] = ("query", "key_value")
    ELASTIC: ClassVar[Mapping[str, str]] = {"heads": "heads"}
    heads: Heads
    head_width: Positive
    layers: Positive = 1
    bias: bool = True

    def kind(self, output: int) -> tuple[Any, ...]:
        return (self.bias,)

    def tensors(self, inputs: Factor, outputs: Factor, memory: Factor) -> Iterator[Tensor]:
        heads = in_heads(self.heads, self.head_width)
        yield from linear("query", (inputs,), heads, self.bias)
        yield from linear("key_value", (memory,), in_heads(self.heads, self.head_width, 2), self.bias)
        yield from linear("output", heads, (outputs,), self.bias)

    def products(self, width: int, output: int, tokens: int, memory: tuple[int, int]) -> Iterator[Product]:
        inner, (depth, length) = self.heads * self.head_width, memory
        yield Product("map", (tokens, inner, width + output))
        yield Product("map", (2 * self.layers * length, depth, inner))
        yield Product("mix", (2, tokens, self.layers * length, inner))

    @property
    def memory_layers(self) -> int:
        return self.layers

    def describe(self) -> str:
        source = plural(self.layers, "encoder layer") if self.layers > 1 else "encoder layer"
        heads = heads_in_words(self.heads, self.head_width)
        return listed(f"cross-attention to the last {source}", heads, "" if self.bias else "no bias")

    def block(self) -> tuple[int, ...]:
        return BlockKind.CROSS_ATTENTION, self.heads * self.head_width, self.layers
