"""The training loop."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.rng import derive
from formwright.train import checkpoint
from formwright.train.batch import Batch, Stream
from formwright.train.device import precision
from formwright.train.losses import Loss
from formwright.train.recipe import Recipe
from formwright.train.state import State
from formwright.train.watch import Watch


class Diverged(EvaluationFailed, ArithmeticError):
    """Say at which step the loss stopped being a number."""


class OutOfMemory(EvaluationFailed, MemoryError):
    """Say at which step the memory was used up."""


class Paused(Exception):
    """Ask, from `after_step`, for the run to be saved and left; the loop raises it again."""


@dataclass(frozen=True)
class Saving:
    """Say where a run is saved, and every how many steps; `every=0` saves only at the end and when paused."""

    folder: Path
    every: int = 0

    def __post_init__(self) -> None:
        """Refuse a number of steps that never comes."""
        if self.every < 0:
            raise IllegalInput(f"a run can be saved every 1, 2 or more steps, or at its end (0), not {self.every}")


def train(
    model: nn.Module,
    stream: Stream,
    loss: Loss,
    recipe: Recipe,
    saving: Saving | None = None,
    after_step: Callable[[int, float], None] | None = None,
    *,
    until: int | None = None,
    watch: Watch | None = None,
) -> list[float]:
    """Train a model in place and return the loss of every step.

    With `saving`, a run that was interrupted goes on from its newest whole checkpoint, and its later losses are the
    same, bit for bit, as those of a run never interrupted. `after_step` receives each step and its loss. `until` stops
    after so many steps of the recipe; a later call with the same folder goes on from there.
    """
    state = begin(model, recipe, saving)
    go_on(state, stream, loss, saving, after_step, until=until, watch=watch)
    return state.losses


def begin(model: nn.Module, recipe: Recipe, saving: Saving | None = None) -> State:
    """Make the state of a run: that of its newest whole checkpoint, or that of a model yet to be trained."""
    state = State(model, _optimiser(model, recipe), recipe)
    if saving is not None and (found := checkpoint.newest(saving.folder)) is not None:
        state.restore(found)
    return state


def go_on(
    state: State,
    stream: Stream,
    loss: Loss,
    saving: Saving | None = None,
    after_step: Callable[[int, float], None] | None = None,
    *,
    until: int | None = None,
    watch: Watch | None = None,
) -> None:
    """Train on from a state, which is changed, as `train` says."""
    last = min(state.recipe.steps, state.recipe.steps if until is None else until)
    while len(state.losses) < last and not (watch is not None and watch.is_over(state)):
        try:
            _timed_step(state, stream, loss, watch)
            if after_step is not None:
                after_step(len(state.losses) - 1, state.losses[-1])
        except Paused:
            _save(state, saving)
            raise
        if saving is not None and saving.every and len(state.losses) % saving.every == 0:
            _save(state, saving)
    _save(state, saving)
    if watch is not None:
        watch.finish(state)


def scores_of(model: nn.Module, batch: Batch) -> Tensor:
    """Run a task model on a batch."""
    return model(batch.inputs, batch.mask, batch.types, batch.targets, batch.targets_mask, batch.positions)


@contextmanager
def enough_memory(where: str) -> Iterator[None]:
    """Fail, saying where, when the memory is used up."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, EvaluationFailed) or not _lacks_memory(error):
            raise
        raise OutOfMemory(f"the memory was used up {where}") from error


def _save(state: State, saving: Saving | None) -> None:
    if saving is not None and len(state.losses) > state.saved:
        checkpoint.write(saving.folder, state.checkpoint())
        state.saved = len(state.losses)


def _timed_step(state: State, stream: Stream, loss: Loss, watch: Watch | None) -> None:
    began = time.perf_counter()
    _step(state, stream, loss)
    if watch is not None:
        watch.look(state)
    state.seconds += time.perf_counter() - began


def _step(state: State, stream: Stream, loss: Loss) -> None:
    step = len(state.losses)
    # every step seeds itself, so dropout depends on the step alone and a resumed run draws what it would have drawn
    torch.manual_seed(int(derive(state.recipe.seed, "step", step).integers(1 << 62)))
    for group in state.optimiser.param_groups:
        group["lr"] = state.recipe.rate(step)
    with enough_memory(f"at step {step}; try a batch smaller than {state.recipe.batch}"):
        state.losses.append(_update(state, stream, loss, step))


def _update(state: State, stream: Stream, loss: Loss, step: int) -> float:
    state.model.train()  # always: a part of it may have been judged meanwhile, which the whole does not show
    device = state.parameters[0].device
    state.optimiser.zero_grad(set_to_none=True)
    total, parts = 0.0, state.recipe.accumulate
    for part in range(parts):
        batch = stream.batch(step * parts + part).to(device)
        with precision(device):
            value = loss(scores_of(state.model, batch), batch) / parts
        total += _finite("the loss", value, state)
        value.backward()
    # weights that are no numbers after the last step would be judged as if they had been trained
    _finite("the size of the gradient", nn.utils.clip_grad_norm_(state.parameters, state.recipe.clip), state)
    state.optimiser.step()
    return total


def _finite(what: str, value: Tensor, state: State) -> float:
    number = float(value.detach())
    if not math.isfinite(number):
        step, rate = len(state.losses), state.recipe.learning_rate
        raise Diverged(f"{what} is {number} at step {step}; lower the learning rate ({rate})")
    return number


def _lacks_memory(error: BaseException) -> bool:
    words = str(error).lower()
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "allocate memory" in words


def _optimiser(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Make AdamW, with biases and norms free of weight decay."""
    parameters = list(model.parameters())
    groups = [
        {"params": [parameter for parameter in parameters if parameter.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [parameter for parameter in parameters if parameter.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, recipe.beta2), fused=True)
