"""No operation."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from formwright.arch.compute_blocks import BlockKind
from formwright.arch.operations.base import Operation, Place, Swatch
from formwright.core.errors import Fault


@dataclass(frozen=True)
class Identity(Operation):
    """Pass the input on unchanged."""

    TYPE: ClassVar[str] = "identity"
    MODULE: ClassVar[str] = "formwright.nn.operations.identity:PassOn"
    PLACES: ClassVar[tuple[Place, ...]] = ("mixer", "branch")
    SWATCH: ClassVar[Swatch] = Swatch("identity", "#DDDDDD", "·", filled=False)

    def faults(self, width: int, output: int) -> Iterator[Fault]:
        if output != width:
            yield Fault("type", f"is identity, which keeps the width {width} and cannot give {output}")

    def describe(self) -> str:
        return self.SWATCH.name

    def block(self) -> tuple[int, ...]:
        return (BlockKind.IDENTITY,)
