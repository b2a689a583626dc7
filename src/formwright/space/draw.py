"""Draw exact integers of any size from a numpy generator."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from numpy.random import Generator

_WORD = 2**63  # the largest bound numpy draws in one step


def below(rng: Generator, bound: int) -> int:
    """Draw an integer uniformly from 0 to `bound` - 1; `bound` may exceed every machine word."""
    assert bound > 0, "there is no integer to draw"
    if bound <= _WORD:
        return int(rng.integers(bound))
    bits = (bound - 1).bit_length()
    excess = -bits % 8
    while True:  # a draw is rejected with probability below one half
        drawn = int.from_bytes(rng.bytes((bits + excess) // 8), "little") >> excess
        if drawn < bound:
            return drawn


def weighted(rng: Generator, weights: Sequence[int]) -> int:
    """Draw an index with probability exactly proportional to its integer weight."""
    return pick(rng, list(accumulate(weights)))


def pick(rng: Generator, ends: Sequence[int]) -> int:
    """Draw an index as `weighted` does, from the running totals of the weights; quick where they are kept."""
    return bisect_right(ends, below(rng, ends[-1]))
