"""The layers of many designs at once: each different layer one time, and its place in every design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.arch.layers import Layer, Stack

Integers = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class LayerLists:
    """Hold different layers and, for encoders and decoders, an array (designs, depth) of numbers.

    The number n stands for `layers[n - 1]`, and 0, at the end of a list, for no layer: lists of unequal length, or of
    designs without such a stack, are filled up with it.
    """

    layers: tuple[Layer, ...]
    encoders: Integers
    decoders: Integers

    @classmethod
    def of(cls, cards: Sequence[Card]) -> LayerLists:
        """List the layers of designs."""
        numbers: dict[Layer, int] = {}
        encoders = _filled([_numbered(card.encoder, numbers) for card in cards])
        decoders = _filled([_numbered(card.decoder, numbers) for card in cards])
        return cls(tuple(numbers), encoders, decoders)


def _numbered(stack: Stack | None, numbers: dict[Layer, int]) -> list[int]:
    return [numbers.setdefault(layer, len(numbers) + 1) for layer in stack.layers] if stack is not None else []


def _filled(lists: list[list[int]]) -> Integers:
    depth = max(map(len, lists), default=0)
    return np.array([numbers + [0] * (depth - len(numbers)) for numbers in lists], np.intp).reshape(len(lists), depth)
