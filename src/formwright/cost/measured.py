"""Costs that are measured on a device, in the same registry as those that are counted."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from formwright.arch.card import Card

LATENCY = "latency_ms"


class Meter(Protocol):
    """Tell one measured cost of cards: `decided` measures again before a card is rejected."""

    busy: bool

    def __call__(self, card: Card) -> float: ...
    def decided(self, card: Card, keeps: Callable[[float], bool]) -> float: ...


@dataclass(frozen=True)
class MeasuredCost:
    """A cost that is measured on a device. `maker`, a `module:function`, gives the meter for a length and a device."""

    name: str
    unit: str
    about: str
    maker: str

    def meter(self, length: int, device: str = "cpu") -> Meter:
        module, _, function = self.maker.partition(":")
        found: Any = getattr(import_module(module), function)(length, device)
        return found  # type: ignore[no-any-return]


LATENCY_MS = MeasuredCost(
    LATENCY,
    "milliseconds",
    "median time of one forward pass over one row, measured on one thread of the device of the run",
    "formwright.nn.latency:meter",
)
