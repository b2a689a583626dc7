"""An operation, as it is declared: everything that cards, costs, drawings and shared weights know of it; no torch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from formwright.arch.ops import Operation, Place, Swatch
from formwright.arch.tensors import Factor, Product, Tensor, linear
from formwright.core.codec import Positive


@dataclass(frozen=True)
class TokenShift(Operation):
    """Blend every token with the one `steps` before it, channel by channel, then map it."""

    TYPE: ClassVar[str] = "token-shift"
    MODULE: ClassVar[str] = "formwright_thumb.token_shift_module:TokenShiftModule"
    PLACES: ClassVar[tuple[Place, ...]] = ("mixer", "branch")
    SWATCH: ClassVar[Swatch] = Swatch("token shift", "#EE8866", "»")
    steps: Positive = 1

    def tensors(self, inputs: Factor, outputs: Factor, memory: Factor) -> Iterator[Tensor]:
        yield Tensor("share", ((inputs,),))
        yield from linear("output", (inputs,), (outputs,))

    def products(self, width: int, output: int, tokens: int, memory: tuple[int, int]) -> Iterator[Product]:
        yield Product("map", (tokens, width, output))
