"""What a decoder keeps of the tokens that it has read, so that the next token costs no more than itself."""

from collections.abc import Callable

import torch
from torch import Tensor


class Cache:
    """Hold keys, values and the last inputs of convolutions, for every layer of one decoder.

    Every pass through a decoder asks for its parts in the same order, so the number of the question names the part.
    `length` counts the tokens that were read.
    """

    def __init__(self) -> None:
        self.length = 0
        self._parts: list[Tensor] = []

    def extended(self, number: int, new: Tensor, dimension: int, most: int | None = None) -> Tensor:
        """Put new tokens behind those that were kept, and keep the last `most` of all of them, or all."""
        whole = new if number == len(self._parts) else torch.cat((self._parts[number], new), dimension)
        tokens = whole.shape[dimension]
        kept = tokens if most is None else min(most, tokens)
        self._keep(number, whole.narrow(dimension, tokens - kept, kept))
        return whole

    def once(self, number: int, compute: Callable[[], Tensor]) -> Tensor:
        """Return what `compute` gives, computing it when the first token is read."""
        if number == len(self._parts):
            self._keep(number, compute())
        return self._parts[number]

    def choose(self, rows: Tensor) -> None:
        """Go on with some rows of the batch, in the order given; a row may be chosen more than once."""
        self._parts = [part[rows] for part in self._parts]

    def _keep(self, number: int, part: Tensor) -> None:
        if number == len(self._parts):
            self._parts.append(part)
        else:
            self._parts[number] = part
