"""Train a card as far as a budget says, and further when asked again."""

from dataclasses import dataclass

from formwright.core.errors import IllegalInput
from formwright.core.records import Observation, Request
from formwright.evaluate.context import Context
from formwright.evaluate.training import Trainer


@dataclass(frozen=True)
class Staged:
    """Score a card after as many steps as its budget says; a later request goes on from the stored checkpoint.

    The learning rate follows the whole recipe, so that training in stages is, bit for bit, training in one go. What an
    observation says was spent are the steps since the stage before.
    """

    trainer: Trainer

    def evaluate(self, request: Request, context: Context) -> Observation:
        """Train the card of a request to its budget and judge it on validation."""
        steps, most = request.budget.steps, self.trainer.training.recipe.steps
        if steps is not None and not 1 <= steps <= most:
            raise IllegalInput(f"the recipe trains 1 to {most} steps; a budget of {steps} is outside")
        if context.folder is None:
            raise IllegalInput("training in stages needs a folder for its checkpoints; give the context one")
        return self.trainer.observe(request, context, resumable=True)
