"""Early stopping: judge a model while it is trained, keep its best weights, and stop when it no longer improves."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from formwright.core.errors import IllegalInput
from formwright.train.recipe import Recipe
from formwright.train.state import State

PATIENCE = 5  # judgements without a better one, where nobody says how many
_JUDGEMENTS, _FEWEST = 20, 4  # of a whole training: by default, and however many rows validation has
_SHORT = 100  # steps: a shorter training is judged at its end alone where judging takes long
_SHARE = 0.2  # of the time of training, that judging may take
_FORWARD = 3  # passes of a row through the model that one step of training is worth


def usual_every(recipe: Recipe, rows: int) -> int:
    """Say every how many steps to judge by default: 20 times, or less often where validation has many rows.

    Judging shall take at most a fifth of the time of training, by the rows that each of them computes; but a training
    of 100 steps and more is judged four times, whatever that takes.
    """
    affordable = math.ceil(rows / (_SHARE * _FORWARD * recipe.batch * recipe.accumulate))
    every = max(math.ceil(recipe.steps / _JUDGEMENTS), affordable)
    return every if recipe.steps < _SHORT else min(every, math.ceil(recipe.steps / _FEWEST))


@dataclass(frozen=True)
class Watch:
    """Say how a model is judged (higher is better), every how many steps, and when to stop.

    Training stops after `patience` judgements in a row that were no better than the best before them, but not before
    step `least`. In the end the model has the weights that were judged best.
    """

    judge: Callable[[nn.Module], float]
    every: int
    patience: int = 3
    least: int = 0

    def __post_init__(self) -> None:
        """Refuse a watch that never looks."""
        if self.every < 1 or self.patience < 1:
            raise IllegalInput(f"a watch needs at least one step and one judgement, not {self.every}, {self.patience}")

    def look(self, state: State) -> None:
        """Judge the model when it is time, and remember its weights when they are the best so far."""
        step = len(state.losses)
        if step % self.every and step != state.recipe.steps:
            return
        score = self.judge(state.model)
        if not state.judged or score > max(old for _, old in state.judged):
            state.best = {name: tensor.detach().clone() for name, tensor in state.model.named_parameters()}
        state.judged.append((step, score))

    def is_over(self, state: State) -> bool:
        """Tell whether the last judgements were all no better than an earlier one; the judgements alone decide."""
        scores = [score for _, score in state.judged]
        earlier, last = scores[: -self.patience], scores[-self.patience :]
        return bool(earlier) and max(last) <= max(earlier) and state.judged[-1][0] >= self.least

    def finish(self, state: State) -> None:
        """Give the model its best weights."""
        with torch.no_grad():
            for name, parameter in state.model.named_parameters():
                if name in state.best:
                    parameter.copy_(state.best[name])
