"""Designs as sequences of tokens, for a network that writes them one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formwright.search.slots import decompose, slots
from formwright.space import Part

Tokens = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Vocabulary:
    """Number the options of all slots of a part: each option of each slot is a token."""

    part: Part[Any]
    first: dict[str, int]
    size: int

    @classmethod
    def of(cls, part: Part[Any]) -> Vocabulary:
        """List the tokens of a part; raise `IllegalInput` where it has no slots."""
        first, size = {}, 0
        for slot in slots(part):
            first[slot.name] = size
            size += slot.options
        return cls(part, first, size)

    def read(self, design: Any) -> tuple[Tokens, Mask]:
        """Return the tokens of a design, and for each of them which tokens could have stood in its place."""
        taken = list(decompose(self.part, design))
        rows = [(self.first[slot.name], slot.options, option) for slot, option in taken]
        firsts, options, chosen = np.array(rows, dtype=np.intp).T
        place = np.arange(self.size) - firsts[:, None]  # (steps, tokens)
        return firsts + chosen, (place >= 0) & (place < options[:, None])
