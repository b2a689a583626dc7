"""The training loop."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from formwright.core.errors import FormwrightError
from formwright.core.rng import derive
from formwright.train import checkpoint
from formwright.train.batch import Batch, Stream
from formwright.train.losses import Loss
from formwright.train.recipe import Recipe


class Diverged(FormwrightError, ArithmeticError):
    """Say at which step the loss stopped being a number."""


@dataclass(frozen=True)
class Saving:
    """Say where and how often a run is saved."""

    folder: Path
    every: int


def train(
    model: nn.Module,
    stream: Stream,
    loss: Loss,
    recipe: Recipe,
    saving: Saving | None = None,
    after_step: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Train a model in place and return the loss of every step.

    With `saving`, a run that was interrupted goes on from its newest whole checkpoint, and its later losses are the
    same, bit for bit, as those of a run never interrupted. `after_step` receives each step and its loss.
    """
    optimiser = torch.optim.AdamW(_groups(model, recipe.weight_decay), lr=recipe.learning_rate)
    losses = _resume(model, optimiser, saving)
    for step in range(len(losses), recipe.steps):
        # every step seeds itself, so dropout depends on the step alone and a resumed run draws what it would have drawn
        torch.manual_seed(int(derive(recipe.seed, "step", step).integers(1 << 62)))
        for group in optimiser.param_groups:
            group["lr"] = recipe.rate(step)
        losses.append(_update(model, stream, loss, recipe, optimiser, step))
        if after_step is not None:
            after_step(step, losses[-1])
        if saving is not None and ((step + 1) % saving.every == 0 or step + 1 == recipe.steps):
            checkpoint.write(saving.folder, _state(model, optimiser, losses))
    return losses


def scores_of(model: nn.Module, batch: Batch) -> Tensor:
    """Run a task model on a batch."""
    return model(batch.inputs, batch.mask, batch.types, batch.targets, batch.targets_mask, batch.positions)


def _update(
    model: nn.Module, stream: Stream, loss: Loss, recipe: Recipe, optimiser: torch.optim.Optimizer, step: int
) -> float:
    model.train()
    optimiser.zero_grad(set_to_none=True)
    total = 0.0
    for part in range(recipe.accumulate):
        batch = stream.batch(step * recipe.accumulate + part)
        value = loss(scores_of(model, batch), batch) / recipe.accumulate
        number = float(value.detach())
        if not math.isfinite(number):
            raise Diverged(f"the loss is {number} at step {step}; lower the learning rate ({recipe.learning_rate})")
        value.backward()
        total += number
    nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
    optimiser.step()
    return total


def _groups(model: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """Keep biases and norms free of weight decay."""
    named = list(model.named_parameters())
    return [
        {"params": [parameter for _, parameter in named if parameter.ndim > 1], "weight_decay": weight_decay},
        {"params": [parameter for _, parameter in named if parameter.ndim <= 1], "weight_decay": 0.0},
    ]


def _state(model: nn.Module, optimiser: torch.optim.Optimizer, losses: list[float]) -> checkpoint.Checkpoint:
    tensors = {f"model.{name}": parameter for name, parameter in model.named_parameters()}
    for name, parameter in model.named_parameters():
        for key, moment in optimiser.state.get(parameter, {}).items():
            tensors[f"optimiser.{key}.{name}"] = moment
    return checkpoint.Checkpoint(len(losses), tensors, {"losses": losses})


def _resume(model: nn.Module, optimiser: torch.optim.Optimizer, saving: Saving | None) -> list[float]:
    found = checkpoint.newest(saving.folder) if saving is not None else None
    if found is None:
        return []
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(found.tensors[f"model.{name}"])
            moments = {key: found.tensors.get(f"optimiser.{key}.{name}") for key in ("step", "exp_avg", "exp_avg_sq")}
            optimiser.state[parameter] = {key: moment for key, moment in moments.items() if moment is not None}
    return list(found.facts["losses"])
