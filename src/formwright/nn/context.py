"""What the layers of one stack share during a forward pass: who may look at whom, and what is worth computing once."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from formwright.nn.cache import Cache


class Context:
    """Carry masks and encoder outputs through a stack.

    `mask` is (batch, tokens), true where a token is real, or None when all are. `memory` holds the encoder's layer
    outputs, last one last, and `memory_mask` tells which of its tokens are real. `grid` is the (side, class tokens) of
    an image. With a `cache` the stack reads on: its input are the tokens behind those of the cache, and `mask` is that
    of all of them.
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
        """Return what `compute` gives, computing it for the first layer only."""
        if key not in self._shared:
            self._shared[key] = compute()
        return self._shared[key]

    @property
    def reads_on(self) -> bool:
        """Tell whether tokens may have been read before."""
        return self._cache is not None

    def whole(self) -> "Context":
        """Give the context of all tokens at once, those that were read before among them."""
        return Context(self.mask, causal=self.causal)

    def joined(self, new: Tensor, dimension: int, most: int | None = None) -> Tensor:
        """Put what belongs to these tokens behind what was kept of those before; the last `most` of all are kept."""
        if self._cache is None:
            return new
        self._asked += 1
        return self._cache.extended(self._asked - 1, new, dimension, most)

    def of_memory(self, compute: Callable[[], Tensor]) -> Tensor:
        """Return what `compute` makes of the encoder's outputs, which is the same for every token."""
        if self._cache is None:
            return compute()
        self._asked += 1
        return self._cache.once(self._asked - 1, compute)

    def visible(self, tokens: int, device: torch.device) -> Tensor | None:
        """Tell which keys the last `tokens` queries may see: (batch or 1, 1, queries or 1, keys), or None when all."""
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
        # Padding before a sentence sees itself: a query that sees nothing is NaN, and spreads through the layers above.
        itself = torch.eye(tokens, dtype=torch.bool, device=device)
        return (keys & past) | itself

    def hidden(self, tokens: int, like: Tensor) -> Tensor | None:
        """Give what keeps a query from what it may not see, to be added to its scores, or None when it sees all."""
        visible = self.visible(tokens, like.device)
        return None if visible is None else self.once(("hidden", like.dtype), lambda: barred(visible, like))

    def real(self, x: Tensor) -> Tensor:
        """Set the vectors of padding to zero, so that neighbours cannot see them; x is (batch, tokens, width)."""
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
    """Turn what is visible into what is to be added to scores: 0, and minus infinity for the rest."""
    return torch.zeros((), dtype=like.dtype, device=like.device).masked_fill(~visible, float("-inf"))
