"""Token mixing without scores: a fixed transform over tokens and features."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from formwright.arch.compute_blocks import BlockKind
from formwright.arch.operations.base import Heads, Operation, Place, Relative, Swatch, heads_in_words, in_heads
from formwright.arch.tensors import Factor, Product, Tensor, linear
from formwright.core.codec import Positive, write
from formwright.core.errors import Fault

_TRANSFORMS = {"dft": "Fourier transform", "dct": "cosine transform"}


@dataclass(frozen=True)
class RelativeAttention:
    """The term softmax(Q R^T / sqrt(d)) V, which adds positions to a mixer that has none of its own."""

    axes: ClassVar[int] = 1
    heads: Heads
    head_width: Positive
    rows: Positive


@dataclass(frozen=True)
class Transform(Operation):
    """Token mixing by a fixed transform over tokens and features: real part of `dft`, or `dct`."""

    TYPE: ClassVar[str] = "transform"
    MODULE: ClassVar[str] = "formwright.nn.operations.transform:TransformMixer"
    PLACES: ClassVar[tuple[Place, ...]] = ("mixer",)
    SWATCH: ClassVar[Swatch] = Swatch("Fourier or cosine transform", "#DDCC77", "≈")
    CAUSAL: ClassVar[bool] = False
    transform: Literal["dft", "dct"]
    relative: RelativeAttention | None = None

    @property
    def inner(self) -> int:
        """Return the width of all heads together; 0 without relative positions."""
        return self.relative.heads * self.relative.head_width if self.relative is not None else 0

    def faults(self, width: int, output: int) -> Iterator[Fault]:
        if self.relative is not None and self.inner != width:
            yield Fault("relative", f"is {self.inner} wide (heads x head width) and is added to a width of {width}")

    def kind(self, output: int) -> tuple[Any, ...]:
        # heads are added to the transformed numbers, so their width says which numbers they are added to
        return self.transform, self.relative and self.relative.head_width

    @property
    def ordered(self) -> bool:
        return True

    def tensors(self, inputs: Factor, outputs: Factor, memory: Factor) -> Iterator[Tensor]:
        if self.relative is not None:
            heads = in_heads(self.relative.heads, self.relative.head_width)
            yield from linear("query", (inputs,), heads)
            yield from linear("value", (inputs,), heads)
            yield from Relative(self.relative.rows).tensors("term.positions", self.relative.head_width)
            yield from linear("output", heads, (outputs,))

    def products(self, width: int, output: int, tokens: int, memory: tuple[int, int]) -> Iterator[Product]:
        parts = 2 if self.transform == "dft" else 1  # cosines and sines
        yield Product("map", (parts, tokens, width, width))
        yield Product("mix", (parts, tokens, tokens, width))
        if self.relative is not None:
            yield Product("map", (tokens, self.inner, 2 * width + output))
            yield Product("mix", (2, tokens, tokens, self.inner))

    @property
    def head_count(self) -> int:
        return 1 if self.relative is None else self.relative.heads

    def with_heads(self, change: Callable[[int], int]) -> Operation:
        if self.relative is None:
            return self
        return replace(self, relative=replace(self.relative, heads=change(self.relative.heads)))

    def describe(self) -> str:
        words, relative = _TRANSFORMS[self.transform], self.relative
        heads = relative and heads_in_words(relative.heads, relative.head_width)
        return f"{words} + relative attention, {heads}" if heads else words

    def block(self) -> tuple[int, ...]:
        return BlockKind.TRANSFORM, self.inner, tuple(_TRANSFORMS).index(self.transform)

    def parallel(self) -> tuple[int, dict[str, Any]]:
        data = write(self)
        return data["relative"].pop("heads") if self.relative is not None else 1, data
