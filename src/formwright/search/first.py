"""Judge designs that are known to be of interest before a searcher has its say."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.random import Generator

from formwright.core.protocols import Design, Searcher
from formwright.core.records import Budget, History, Request
from formwright.search.unseen import Legal, Proposal, anything
from formwright.space import Space


@dataclass(frozen=True)
class First:
    """Propose designs in their order, where they are legal and not asked for yet, and then what a searcher says."""

    space: Space
    designs: tuple[Design, ...]
    searcher: Searcher
    legal: Legal = anything

    def ask(self, history: History, rng: Generator) -> Request:
        """Return the first design that is left, or the searcher's."""
        seen = history.digests
        for design in self.designs:
            card = self.space.card(design)
            if card.digest not in seen and self.legal(card):
                return Proposal(design, card).request(Budget.full())
        return self.searcher.ask(history, rng)
