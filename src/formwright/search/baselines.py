"""Simple searchers: random, largest first, local search, and given designs before another searcher."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.arch.distance import BlockOrder
from formwright.arch.graph import segment
from formwright.core.errors import IllegalInput
from formwright.core.options import option
from formwright.core.protocols import Design, Searcher
from formwright.core.records import Budget, History, Request, Trial
from formwright.cost import params
from formwright.search.listing import foreign, listing
from formwright.search.proposals import Legal, Proposal, anything, random_unseen
from formwright.search.scores import ranks, score
from formwright.search.searchers import CheckedSearcher
from formwright.space import Space
from formwright.space.design import By


@dataclass(frozen=True)
class RandomSearch(CheckedSearcher):
    """Draw designs without repetition, all equally likely or `by="gene"`; objectives are ignored."""

    NEEDS_GOALS = False
    by: By = option("design", "draw every design, or every gene, with equal probability")

    def ask(self, history: History, rng: Generator) -> Request:
        return random_unseen(self.space, history, rng, self.legal, self.by).request(Budget.full())


Size = Literal["params", "rank"]


@dataclass(frozen=True)
class LargestFirst(CheckedSearcher):
    """Propose designs by descending size, ties at random; scores are ignored.

    The size is the number of parameters or, with `by="rank"`, the sum of the ranks of all compute blocks (see
    `BlockOrder`), which is what the edit distance charges for building the design. Where a space is too large to list,
    the designs of a fixed random pool come first, and then random ones. The first proposal raises `IllegalInput` where
    the cards of the space are not Formwright's own, because their size is unknown.
    """

    NEEDS_GOALS = False
    by: Size = option("params", "what is the size of a design: its parameters, or the rank of its blocks")

    def ask(self, history: History, rng: Generator) -> Request:
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
    if foreign(cards):
        raise IllegalInput(
            f"the searcher 'largest-first' needs Formwright cards, whose size it can count; those of space "
            f"{space.name!r} are of another class. Use 'random'."
        )
    sizes = np.array([params(card) for card in cards] if by == "params" else total_ranks(cards), np.float64)
    return sizes, np.argsort(-sizes, kind="stable")


def total_ranks(cards: Sequence[Card]) -> list[int]:
    """Sum, for each card, the ranks of its blocks among all blocks of the cards."""
    order = BlockOrder.of(cards)
    layers = {layer for card in cards for stack in card.stacks for layer in stack.layers}
    rank = {layer: sum(map(order.rank, segment(layer).blocks)) for layer in layers}
    return [sum(rank[layer] for stack in card.stacks for layer in stack.layers) for card in cards]


@dataclass(frozen=True)
class LocalSearch(CheckedSearcher):
    """Move from a random design to better neighbours, and restart at random where none is better.

    A climb is a trial without a parent and all its descendants. It goes on from its best trials: one, or with several
    goals the whole front of the climb (Pareto local search).
    """

    def ask(self, history: History, rng: Generator) -> Request:
        seen = history.digests
        for climb in reversed(_climbs(history)):
            rank = ranks(score(climb, self.objectives))
            for trial in (climb[index] for index in np.flatnonzero(rank == 0)):
                near = self.space.neighbours(trial.request.design)
                proposals = list(_unseen(self.space, near, seen, self.legal))
                if proposals:
                    return proposals[int(rng.integers(len(proposals)))].request(Budget.full(), trial.number)
        return random_unseen(self.space, history, rng, self.legal).request(Budget.full())


def _climbs(history: History) -> list[list[Trial]]:
    start: dict[int, int] = {}
    climbs: dict[int, list[Trial]] = {}
    for trial in history.trials:
        parent = trial.request.parent
        start[trial.number] = trial.number if parent is None else start.get(parent, parent)
        if trial.state == "finished" and trial.request.design is not None:
            climbs.setdefault(start[trial.number], []).append(trial)
    return [climbs[number] for number in sorted(climbs)]


@dataclass(frozen=True)
class First:
    """Propose the given designs in order, skipping illegal and proposed ones, then ask the searcher."""

    space: Space
    designs: tuple[Design, ...]
    searcher: Searcher
    legal: Legal = anything

    def ask(self, history: History, rng: Generator) -> Request:
        given = next(_unseen(self.space, self.designs, history.digests, self.legal), None)
        return self.searcher.ask(history, rng) if given is None else given.request(Budget.full())


def _unseen(space: Space, designs: Iterable[Design], seen: frozenset[str], legal: Legal) -> Iterator[Proposal]:
    for design in designs:
        card = space.card(design)
        if card.digest not in seen and legal(card):
            yield Proposal(design, card)
