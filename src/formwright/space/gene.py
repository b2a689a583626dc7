"""Genes: the places of a design where something else could have been chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Gene:
    """Name one active gene of a design: where it sits, what it holds and, on demand, what it may hold.

    A gene is `structural` where other genes come and go with what it holds.
    """

    path: Path
    value: Any
    choices: Callable[[Any], tuple[Any, ...]] = field(repr=False)
    structural: bool = False

    @property
    def options(self) -> tuple[Any, ...]:
        """List every value this gene may take next, its present one included."""
        return self.choices(self.value)

    @property
    def name(self) -> str:
        """Write the path as people read it, such as `layers[1].mixer`."""
        return show_path(self.path)


def show_path(path: Path) -> str:
    """Write a path as people read it, such as `layers[1].mixer`; the root is empty."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
