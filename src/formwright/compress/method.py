"""How the stages of a compression are done."""

import math
from dataclasses import dataclass

from formwright.compress.plan import Order
from formwright.train.distil import Mix
from formwright.train.fit import Training

_MOST_FASTER = 4.0  # what 40 steps of MiniLM were tried with


@dataclass(frozen=True)
class Method:
    """Say how the stages are done: everything that decides them beside the data and the numbers of steps.

    `usual_steps` are those for which the teacher's rate was chosen, where fewer shall learn at a higher one.
    """

    training: Training  # of the teacher; its recipe's steps are those of the plan
    network_rate: float
    mix: Mix
    between: int
    configurations: int
    whole: bool
    order: Order
    hidden: tuple[int, ...] = ()
    usual_steps: int | None = None

    def teacher_rate(self, steps: int) -> float:
        """Give the rate of the teacher: by the square root higher where it has fewer steps than usual."""
        rate = self.training.recipe.learning_rate
        if self.usual_steps is None or steps >= self.usual_steps:
            return rate
        return rate * min(_MOST_FASTER, math.sqrt(self.usual_steps / steps))
