"""Largest first: a baseline without learning, which a method that claims to learn something has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.arch.block_order import BlockOrder
from formwright.arch.card import Card
from formwright.arch.compute_blocks import blocks_of
from formwright.core.errors import IllegalInput
from formwright.core.records import Budget, History, Objective, Request
from formwright.cost import params
from formwright.search.listing import listing
from formwright.search.unseen import Legal, Proposal, anything, random_unseen
from formwright.space import Space

Size = Literal["params", "rank"]


@dataclass(frozen=True)
class LargestFirst:
    """Propose designs by descending size, ties at random; scores are never looked at.

    The size is the number of parameters or, with `by="rank"`, the sum of the ranks of all compute blocks (see
    `BlockOrder`), which is what the edit distance charges for building the design. Where a space is too large to list,
    the designs of a fixed random pool come first, and then random ones.
    """

    space: Space
    objectives: tuple[Objective, ...] = ()
    legal: Legal = anything
    by: Size = "params"

    def __post_init__(self) -> None:
        if self.by not in get_args(Size):
            raise IllegalInput(f"by is {self.by!r}; it must be {' or '.join(map(repr, get_args(Size)))}.")

    def ask(self, history: History, rng: Generator) -> Request:
        """Return one of the largest designs that are left."""
        listed, (sizes, order) = listing(self.space, "one-hot"), _by_size(self.space, self.by)
        seen, tied = history.digests, list[int]()
        for row in order:
            if tied and sizes[row] < sizes[tied[0]]:
                break
            if listed.cards[row].digest not in seen and self.legal(listed.cards[row]):
                tied.append(int(row))
        if not tied:  # raises where nothing at all is left
            return random_unseen(self.space, history, rng, self.legal).request(Budget.full())
        chosen = tied[int(rng.integers(len(tied)))]
        return Proposal(listed.designs[chosen], listed.cards[chosen]).request(Budget.full())


@lru_cache(maxsize=8)
def _by_size(space: Space, by: Size) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the sizes of the listed designs, and their rows with the largest first."""
    cards = listing(space, "one-hot").cards
    sizes = np.array([params(card) for card in cards] if by == "params" else total_ranks(cards), np.float64)
    return sizes, np.argsort(-sizes, kind="stable")


def total_ranks(cards: Sequence[Card]) -> list[int]:
    """Sum, for each card, the ranks of its blocks among all blocks of the cards."""
    order = BlockOrder.of(cards)
    layers = {layer for card in cards for stack in card.stacks for layer in stack.layers}
    rank = {layer: sum(map(order.rank, blocks_of(layer))) for layer in layers}
    return [sum(rank[layer] for stack in card.stacks for layer in stack.layers) for card in cards]
