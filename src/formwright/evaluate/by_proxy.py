"""Score cards without training them."""

import time
from dataclasses import dataclass

from formwright.core.errors import IllegalInput
from formwright.core.records import Observation, Request, Spent
from formwright.evaluate.context import Context
from formwright.evaluate.proxies import PROXIES
from formwright.evaluate.training import card_of


@dataclass(frozen=True)
class ByProxy:
    """Score a card by proxies, which need no training; the metrics have the proxies' names."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse names that mean nothing before any work is done."""
        if not self.names:
            raise IllegalInput(f"name at least one proxy: {', '.join(PROXIES.names())}")
        for name in self.names:
            PROXIES.get(name)

    def evaluate(self, request: Request, context: Context) -> Observation:
        """Compute the proxies of the card of a request."""
        began = time.perf_counter()
        card = card_of(request)
        scores = {name: PROXIES.get(name)(card, context.seed) for name in self.names}
        return Observation(scores, Spent(time.perf_counter() - began))
