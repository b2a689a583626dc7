"""Where a compute block stands among all those that the designs of a space are made of."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from formwright.arch.card import Card
from formwright.arch.compute_blocks import INPUT, OUTPUT, ComputeBlock, blocks_of


@dataclass(frozen=True)
class BlockOrder:
    """Hold the different compute blocks of a space, sorted by complexity; a block's rank is its index.

    For FlexiBERT these are input, output, add & norm, 2 feed-forward layers and 4 heads each of transforms,
    self-attention and convolution: 17 blocks, as in the paper. The authors' code sorts them in the same way and leaves
    empty places between the kinds, of which the paper says nothing; here are none.
    """

    blocks: tuple[ComputeBlock, ...]

    @classmethod
    def of(cls, cards: Iterable[Card]) -> BlockOrder:
        """Sort the blocks of all cards of a space, or of a sample of them."""
        layers = {layer for card in cards for stack in card.stacks for layer in stack.layers}
        return cls(tuple(sorted({INPUT, OUTPUT}.union(*map(blocks_of, layers)))))

    def rank(self, block: ComputeBlock) -> int:
        """Give a block's index; one that the order does not know counts as the next less complex that it knows."""
        return bisect_right(self.blocks, block) - 1
