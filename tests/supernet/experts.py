"""An operation of another package with a group of its own: experts, whose gated outputs are added."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import ClassVar

import pytest
import torch
from torch import Tensor as Weight
from torch import nn

from formwright.arch.ops import Operation, Place, Swatch, all_operations, operations_at
from formwright.arch.tensors import Axis, Factor, Product, Tensor, linear
from formwright.core.codec import Positive
from formwright.nn.settings import Settings
from formwright.nn.stack_context import StackContext


@dataclass(frozen=True)
class Experts(Operation):
    """Add the outputs of small networks, each times a gate of its own."""

    TYPE: ClassVar[str] = "experts"
    MODULE: ClassVar[str] = "tests.supernet.experts:ExpertsModule"
    PLACES: ClassVar[tuple[Place, ...]] = ("mixer", "branch")
    SWATCH: ClassVar[Swatch] = Swatch("experts", "#AABBCC", "x")
    ELASTIC: ClassVar[Mapping[str, str]] = {"experts": "members"}
    experts: Positive
    channels: Positive

    @property
    def _members(self) -> Axis:
        return (Factor(self.experts, "members"), Factor(self.channels, "channels of a member"))

    def tensors(self, inputs: Factor, outputs: Factor, memory: Factor) -> Iterator[Tensor]:
        yield from linear("inner", (inputs,), self._members)
        yield from linear("gate", (inputs,), self._members[:1])
        yield from linear("output", self._members, (outputs,))

    def products(self, width: int, output: int, tokens: int, memory: tuple[int, int]) -> Iterator[Product]:
        inner = self.experts * self.channels
        yield Product("map", (tokens, width, inner + self.experts))
        yield Product("map", (tokens, inner, output))


@dataclass(frozen=True)
class Lobes(Operation):
    """Have the fields of an attention, and heads that nobody may cut: they are a group of another name."""

    TYPE: ClassVar[str] = "lobes"
    MODULE: ClassVar[str] = "tests.supernet.experts:ExpertsModule"
    PLACES: ClassVar[tuple[Place, ...]] = ("mixer",)
    SWATCH: ClassVar[Swatch] = Swatch("lobes", "#BBCCDD", "y")
    heads: Positive
    head_width: Positive
    kernel: Positive = 3

    def tensors(self, inputs: Factor, outputs: Factor, memory: Factor) -> Iterator[Tensor]:
        return Experts(self.heads, self.head_width).tensors(inputs, outputs, memory)


@dataclass(frozen=True)
class Bottleneck(Operation):
    """Map tokens through a few channels."""

    TYPE: ClassVar[str] = "bottleneck"
    MODULE: ClassVar[str] = "tests.supernet.experts:ExpertsModule"  # none is built
    PLACES: ClassVar[tuple[Place, ...]] = ("mixer",)
    SWATCH: ClassVar[Swatch] = Swatch("bottleneck", "#CCDDEE", "z")
    ELASTIC: ClassVar[Mapping[str, str]] = {"channels": "channels"}
    channels: Positive

    def tensors(self, inputs: Factor, outputs: Factor, memory: Factor) -> Iterator[Tensor]:
        inner = (Factor(self.channels, "channels"),)
        yield from linear("inner", (inputs,), inner)
        yield from linear("output", inner, (outputs,))

    def products(self, width: int, output: int, tokens: int, memory: tuple[int, int]) -> Iterator[Product]:
        yield Product("map", (tokens, width, self.channels))
        yield Product("map", (tokens, self.channels, output))


@contextmanager
def experts_installed() -> Iterator[None]:
    """Pretend that a package with the operation is installed."""
    entry = EntryPoint("experts", f"{__name__}:Experts", "formwright.operations")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("formwright.core.registry.entry_points", lambda group: [entry] if group == entry.group else [])
        _forget_operations()
        try:
            yield
        finally:
            patch.undo()
            _forget_operations()


def _forget_operations() -> None:
    for kept in (all_operations, operations_at):
        kept.cache_clear()


class ExpertsModule(nn.Module):
    """The experts as they run."""

    def __init__(self, operation: Experts, width: int, output: int, memory: int, settings: Settings) -> None:
        super().__init__()
        self.members = operation.experts
        self.inner = nn.Linear(width, operation.experts * operation.channels)
        self.gate = nn.Linear(width, operation.experts)
        self.output = nn.Linear(operation.experts * operation.channels, output)

    def forward(self, x: Weight, context: StackContext) -> Weight:
        inner = torch.tanh(self.inner(x)).unflatten(-1, (self.members, -1))
        return self.output((inner * self.gate(x).sigmoid()[..., None]).flatten(-2))
