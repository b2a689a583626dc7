"""A searcher: every other proposal is random, the others are neighbours of the best design so far."""

from dataclasses import dataclass

from formwright.core.options import option
from formwright.core.records import Budget, Request
from formwright.search.proposals import anything, random_unseen
from formwright.search.scores import best_of
from formwright.space import Space


@dataclass(frozen=True)
class HalfRandom:
    """Draw designs at random and, every few trials, mutate the best one."""

    space: Space
    objectives: tuple = ()
    legal: object = anything
    every: int = option(2, "trials between two mutations of the best design")

    def ask(self, history, rng):
        """Propose the next design; the same history and generator give the same proposal."""
        best = best_of(history, self.objectives) if history.finished else ()
        if best and len(history.trials) % self.every == 0:
            design = self.space.mutate(best[0].request.design, rng)
            card = self.space.card(design)
            if card.digest not in history.digests and self.legal(card):
                return Request(card, Budget.full(), best[0].number, design)
        return random_unseen(self.space, history, rng, self.legal).request(Budget.full())
