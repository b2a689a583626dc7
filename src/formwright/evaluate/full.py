"""Train a card to the end."""

from dataclasses import dataclass

from formwright.core.records import Budget, Observation, Request
from formwright.evaluate.context import Context
from formwright.evaluate.training import Trainer


@dataclass(frozen=True)
class Full:
    """Score a card by training it to the end of the recipe, whatever budget is asked for."""

    trainer: Trainer

    def evaluate(self, request: Request, context: Context) -> Observation:
        """Train the card of a request and judge it on validation."""
        return self.trainer.observe(Request(request.card, Budget.full()), context)
