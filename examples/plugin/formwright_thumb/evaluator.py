"""An evaluator: a rule of thumb instead of training."""

import math
from dataclasses import dataclass
from typing import ClassVar

from formwright.core.options import option
from formwright.core.records import Observation
from formwright.cost import params
from formwright.pipeline.evaluators import EvaluatorPart


@dataclass(frozen=True)
class RuleOfThumb(EvaluatorPart):
    """Score a design by its size and depth, without training it."""

    NAME: ClassVar[str] = "thumb"
    TRAINS: ClassVar[bool] = False
    depth: float = option(0.1, "what a layer is worth next to the logarithm of the parameters")

    def metrics(self, task):
        """Name the scores."""
        return ("thumb",)

    def bind(self, setting):
        """Give what scores requests; `setting` has the space, the task and the training."""
        return Scorer(self.depth)


@dataclass(frozen=True)
class Scorer:
    """Score requests."""

    depth: float

    def evaluate(self, request, context):
        """Score one design."""
        card = request.card
        return Observation({"thumb": math.log(params(card)) + self.depth * len(card.encoder.layers)})
