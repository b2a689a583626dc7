"""What the layers of one stack share during a forward pass: masks, encoder outputs, and the cache of a decoder."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class Cache:
    """The cache of one decoder: keys, values and the last inputs of convolutions of every layer.

    Every forward pass requests its entries in the same order, so an entry is identified by the number of the request.
    `length` counts the tokens read so far.
    """

    def __init__(self) -> None:
        self.length = 0
        self._parts: dict[int, Tensor] = {}

    def extended(self, number: int, new: Tensor, dimension: int, most: int | None = None) -> Tensor:
        """Append new tokens to the cached ones; keep the last `most` of all, or all."""
        whole = torch.cat((self._parts[number], new), dimension) if number in self._parts else new
        tokens = whole.shape[dimension]
        kept = tokens if most is None else min(most, tokens)
        self._parts[number] = whole.narrow(dimension, tokens - kept, kept)
        return whole

    def once(self, number: int, compute: Callable[[], Tensor]) -> Tensor:
        """Return a cached value, computed when the first token is read."""
        if number not in self._parts:
            self._parts[number] = compute()
        return self._parts[number]

    def choose(self, rows: Tensor) -> None:
        """Select rows of the batch in the given order; a row may be selected more than once."""
        self._parts = {number: part[rows] for number, part in self._parts.items()}


class StackContext:
    """Masks, encoder outputs and values shared by the layers of a stack in one forward pass.

    `mask` is (batch, tokens), true for real tokens, or None if all are. `memory` holds the encoder's layer outputs, the
    last layer last, and `memory_mask` marks its real tokens. `grid` is the (side, class tokens) of an image. With a
    `cache` the input continues the cached tokens, and `mask` covers all of them.
    """

    def __init__(
        self,
        mask: Tensor | None = None,
        *,
        causal: bool = False,
        memory: tuple[Tensor, ...] = (),
        memory_mask: Tensor | None = None,
        grid: tuple[int, int] | None = None,
        cache: Cache | None = None,
    ) -> None:
        self.mask = mask
        self.causal = causal
        self.memory = memory
        self.memory_mask = memory_mask
        self.grid = grid
        self.past = 0 if cache is None else cache.length  # tokens that were read before
        self._cache, self._asked = cache, 0
        self._shared: dict[Any, Tensor] = {}

    def once(self, key: Any, compute: Callable[[], Tensor]) -> Tensor:
        """Return a value that is computed for the first layer only."""
        if key not in self._shared:
            self._shared[key] = compute()
        return self._shared[key]

    @property
    def reads_on(self) -> bool:
        """Return whether tokens may have been read before."""
        return self._cache is not None

    def whole(self) -> "StackContext":
        """Return a context of all tokens at once, cached ones included."""
        return StackContext(self.mask, causal=self.causal)

    def joined(self, new: Tensor, dimension: int, most: int | None = None) -> Tensor:
        """Append the values of these tokens to the cached ones; the last `most` of all are kept."""
        if self._cache is None:
            return new
        self._asked += 1
        return self._cache.extended(self._asked - 1, new, dimension, most)

    def of_memory(self, compute: Callable[[], Tensor]) -> Tensor:
        """Return a value computed from the encoder's outputs, which is the same at every step."""
        if self._cache is None:
            return compute()
        self._asked += 1
        return self._cache.once(self._asked - 1, compute)

    def visible(self, tokens: int, device: torch.device) -> Tensor | None:
        """Return which keys the last `tokens` queries may see: (batch or 1, 1, queries or 1, keys); None means all."""
        if self.mask is None and not self.causal:
            return None
        if not self.past:
            return self.once("visible", lambda: self._visible(tokens, device))
        return self.once("visible", lambda: self._visible(tokens + self.past, device)[:, :, -tokens:])

    def _visible(self, tokens: int, device: torch.device) -> Tensor:
        keys = None if self.mask is None else self.mask[:, None, None, :]
        if not self.causal:
            assert keys is not None
            return keys
        past = torch.ones(tokens, tokens, dtype=torch.bool, device=device).tril()[None, None]
        if keys is None:
            return past
        # Left padding sees itself: a query without any key would be NaN, and spread through the layers above.
        return (keys & past) | torch.eye(tokens, dtype=torch.bool, device=device)

    def hidden(self, tokens: int, like: Tensor) -> Tensor | None:
        """Return the additive attention mask (0 or minus infinity), or None if everything is visible."""
        visible = self.visible(tokens, like.device)
        return None if visible is None else self.once(("hidden", like.dtype), lambda: barred(visible, like))

    def real(self, x: Tensor) -> Tensor:
        """Zero the vectors of padding, so that neighbours cannot see them; x is (batch, tokens, width)."""
        mask = self.mask
        if mask is None:
            return x
        return x * self.once(("real", x.dtype), lambda: mask[:, self.past :, None].to(x.dtype))

    def lengths(self, x: Tensor) -> Tensor:
        """Count the real tokens of each sentence, at least 1, for it is divided by: (batch or 1, 1)."""
        if self.mask is None:
            return torch.full((1, 1), x.shape[1], dtype=torch.long, device=x.device)
        return self.once("lengths", lambda: self.mask.sum(1, keepdim=True).clamp(min=1))

    def positions(self, x: Tensor) -> Tensor:
        """Count the tokens of each sentence from 0, padding aside: (batch or 1, tokens)."""
        if self.mask is None:
            return torch.arange(self.past, self.past + x.shape[1], device=x.device)[None]
        return self.once("positions", lambda: (self.mask.long().cumsum(1) - 1).clamp(min=0)[:, self.past :])


def barred(visible: Tensor, like: Tensor) -> Tensor:
    """Return the additive mask of visible keys: 0, and minus infinity for the rest."""
    return torch.zeros((), dtype=like.dtype, device=like.device).masked_fill(~visible, float("-inf"))
