"""The training loop: a run that resumes exactly from its checkpoints, and early stopping."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path

import torch
from torch import Tensor, nn

from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.rng import derive
from formwright.train import checkpoint
from formwright.train.checkpoint import Checkpoint
from formwright.train.device import precision
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.losses import Loss, StepLoss
from formwright.train.streams import Batch, Stream
from formwright.train.updates import SUM, JoinedLosses

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


@dataclass
class State:
    """A model in training, its optimiser, the loss of every step, and its validation scores so far.

    `seconds` is the training time over all runs; `saved` is the step of the checkpoint last read or written.
    """

    model: nn.Module
    optimiser: torch.optim.Optimizer
    recipe: Hyperparameters
    losses: list[float] = field(default_factory=list)
    judged: list[tuple[int, float]] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)
    seconds: float = 0.0
    saved: int = 0

    @cached_property
    def parameters(self) -> list[nn.Parameter]:
        """List the parameters, cached: finding them takes a tenth of the step of a small model."""
        return list(self.model.parameters())

    @property
    def best_step(self) -> int:
        """Return the step with the best validation score; the last step without early stopping."""
        return max(self.judged, key=lambda one: one[1])[0] if self.judged else len(self.losses)

    def checkpoint(self) -> Checkpoint:
        """Return everything that is needed to resume."""
        tensors: dict[str, Tensor] = {f"model.{name}": parameter for name, parameter in self.model.named_parameters()}
        tensors |= {f"buffer.{name}": buffer for name, buffer in self.model.named_buffers()}
        for name, parameter in self.model.named_parameters():
            for key, moment in self.optimiser.state.get(parameter, {}).items():
                tensors[f"optimiser.{key}.{name}"] = moment
        tensors |= {f"best.{name}": tensor for name, tensor in self.best.items()}
        facts = {"recipe": asdict(self.recipe), "losses": self.losses, "judged": self.judged, "seconds": self.seconds}
        return Checkpoint(len(self.losses), tensors, facts)

    def restore(self, found: Checkpoint) -> None:
        """Restore the state from a checkpoint of the same hyperparameters and the same model."""
        self._check_compatible(found)
        tensors = found.tensors
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(tensors[f"model.{name}"])
                moments = {key: tensors.get(f"optimiser.{key}.{name}") for key in _MOMENTS}
                self.optimiser.state[parameter] = {
                    key: moment.to(parameter.device) for key, moment in moments.items() if moment is not None
                }
            for name, buffer in self.model.named_buffers():
                buffer.copy_(tensors[f"buffer.{name}"])
        self.losses = list(found.facts["losses"])
        self.judged = [(step, score) for step, score in found.facts["judged"]]
        self.seconds = found.facts["seconds"]
        self.saved = found.step
        self.best = {name.removeprefix("best."): tensors[name] for name in tensors if name.startswith("best.")}

    def _check_compatible(self, found: Checkpoint) -> None:
        own, other = asdict(self.recipe), found.facts["recipe"]
        differing = [key for key in own | other if key not in own or key not in other or own[key] != other[key]]
        if differing:
            detail = ", ".join(f"{key} {other[key]}" if key in other else f"no {key}" for key in differing)
            raise IllegalInput(
                f"the checkpoint at step {found.step} was trained with {detail}; use the same, or start a new run"
            )
        wanted = {f"model.{name}": parameter.shape for name, parameter in self.model.named_parameters()}
        wanted |= {f"buffer.{name}": buffer.shape for name, buffer in self.model.named_buffers()}
        parts = ("model.", "buffer.")
        given = {name: tensor.shape for name, tensor in found.tensors.items() if name.startswith(parts)}
        if wrong := sorted({name for name, _ in wanted.items() ^ given.items()}):
            raise IllegalInput(f"the checkpoint at step {found.step} is of another model: {wrong[0]} does not fit")


PATIENCE = 5  # default number of evaluations without improvement
_JUDGEMENTS, _FEWEST = 20, 4  # evaluations of a training: default, and minimum
_SHORT = 100  # steps: a shorter training may be evaluated at its end alone
_SHARE = 0.2  # maximum share of the training time for evaluations
_FORWARD = 3  # a training step costs about three forward passes


def usual_every(recipe: Hyperparameters, rows: int) -> int:
    """Return the default interval of evaluations in steps: 20 evaluations, or fewer if validation has many rows.

    Evaluations take at most a fifth of the training time, estimated by rows; but a training of 100 steps or more is
    evaluated at least four times.
    """
    affordable = math.ceil(rows / (_SHARE * _FORWARD * recipe.batch * recipe.accumulate))
    every = max(math.ceil(recipe.steps / _JUDGEMENTS), affordable)
    return every if recipe.steps < _SHORT else min(every, math.ceil(recipe.steps / _FEWEST))


@dataclass(frozen=True)
class EarlyStopping:
    """Early stopping: how to score a model (higher is better), every how many steps, and when to stop.

    Training stops after `patience` evaluations in a row without improvement, but not before step `least`. In the end
    the model has its best weights.
    """

    judge: Callable[[nn.Module], float]
    every: int
    patience: int = 3
    least: int = 0

    def __post_init__(self) -> None:
        if self.every < 1 or self.patience < 1:
            raise IllegalInput(
                f"early stopping needs `every` and `patience` of at least 1, not {self.every} and {self.patience}"
            )

    def look(self, state: State) -> None:
        """Evaluate the model at its interval, and keep a copy of its weights if they are the best so far."""
        step = len(state.losses)
        if step % self.every and step != state.recipe.steps:
            return
        score = self.judge(state.model)
        if not state.judged or score > max(old for _, old in state.judged):
            state.best = {name: tensor.detach().clone() for name, tensor in state.model.named_parameters()}
        state.judged.append((step, score))

    def is_over(self, state: State) -> bool:
        """Return whether the last `patience` scores brought no improvement; depends on the scores alone."""
        scores = [score for _, score in state.judged]
        earlier, last = scores[: -self.patience], scores[-self.patience :]
        return bool(earlier) and max(last) <= max(earlier) and state.judged[-1][0] >= self.least

    def finish(self, state: State) -> None:
        """Load the best weights into the model."""
        with torch.no_grad():
            for name, parameter in state.model.named_parameters():
                if name in state.best:
                    parameter.copy_(state.best[name])


class Diverged(EvaluationFailed, ArithmeticError):
    """The loss or a gradient became NaN or infinite."""


class OutOfMemory(EvaluationFailed, MemoryError):
    """Training or evaluation ran out of memory."""


class Paused(Exception):
    """Raised by `after_step` to save the run and leave; the loop raises it again."""


@dataclass(frozen=True)
class Saving:
    """Where a run is saved, and every how many steps; `every=0` saves only at the end and when paused."""

    folder: Path
    every: int = 0

    def __post_init__(self) -> None:
        if self.every < 0:
            raise IllegalInput(f"a run can be saved every 1, 2 or more steps, or at its end (0), not {self.every}")


def train(
    model: nn.Module,
    stream: Stream,
    loss: Loss | StepLoss,
    recipe: Hyperparameters,
    saving: Saving | None = None,
    after_step: Callable[[int, float], None] | None = None,
    *,
    until: int | None = None,
    watch: EarlyStopping | None = None,
) -> list[float]:
    """Train a model in place and return the loss of every step.

    With `saving`, an interrupted run resumes from its newest intact checkpoint, and its later losses equal those of
    an uninterrupted run bit for bit. `after_step` receives each step and its loss. `until` stops at that step; a later
    call with the same folder resumes from there. A loss may be several, computed one after another: their gradients
    are added up, or joined as `JoinedLosses` say.
    """
    state = begin(model, recipe, saving)
    go_on(state, stream, loss, saving, after_step, until=until, watch=watch)
    return state.losses


def begin(model: nn.Module, recipe: Hyperparameters, saving: Saving | None = None) -> State:
    """Return the state of a run: from its newest intact checkpoint, or of an untrained model."""
    state = State(model, _optimiser(model, recipe), recipe)
    if saving is not None and (found := checkpoint.newest(saving.folder)) is not None:
        state.restore(found)
    return state


def go_on(
    state: State,
    stream: Stream,
    loss: Loss | StepLoss,
    saving: Saving | None = None,
    after_step: Callable[[int, float], None] | None = None,
    *,
    until: int | None = None,
    watch: EarlyStopping | None = None,
) -> None:
    """Continue training from a state, which is changed; the arguments are those of `train`."""
    last = min(state.recipe.steps, state.recipe.steps if until is None else until)
    while len(state.losses) < last and not (watch is not None and watch.is_over(state)):
        try:
            began = time.perf_counter()
            _step(state, stream, loss)
            if watch is not None:
                watch.look(state)
            state.seconds += time.perf_counter() - began
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


def inputs_of(batch: Batch) -> tuple[Tensor | None, ...]:
    """Return what a task model reads of a batch, in the order of its arguments."""
    return (batch.inputs, batch.mask, batch.types, batch.targets, batch.targets_mask, batch.positions)


def scores_of(model: nn.Module, batch: Batch) -> Tensor:
    """Run a task model on a batch."""
    return model(*inputs_of(batch))


@contextmanager
def enough_memory(where: str) -> Iterator[None]:
    """Turn an out-of-memory error within the block into `OutOfMemory`, saying where it happened."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        lacks = isinstance(error, MemoryError | torch.OutOfMemoryError) or "allocate memory" in str(error).lower()
        if isinstance(error, EvaluationFailed) or not lacks:
            raise
        raise OutOfMemory(f"the memory was used up {where}") from error


def _save(state: State, saving: Saving | None) -> None:
    if saving is not None and len(state.losses) > state.saved:
        checkpoint.write(saving.folder, state.checkpoint())
        state.saved = len(state.losses)


def _step(state: State, stream: Stream, loss: Loss | StepLoss) -> None:
    step = len(state.losses)
    # seeded at every step, so that dropout depends on the step alone and a resumed run draws the same
    torch.manual_seed(int(derive(state.recipe.seed, "step", step).integers(1 << 62)))
    for group in state.optimiser.param_groups:
        group["lr"] = state.recipe.rate(step)
    state.model.train()  # always: an evaluation may have switched a submodule to eval mode
    state.optimiser.zero_grad(set_to_none=True)
    update = loss.update if isinstance(loss, JoinedLosses) else SUM
    found: list[float] = []
    with enough_memory(f"at step {step}; try a batch smaller than {state.recipe.batch}"):
        update.backward(_losses(state, stream, loss, found), state.parameters, state.recipe.share(step))
        # otherwise NaN weights after the last step would be evaluated as if they had been trained
        _finite("the size of the gradient", nn.utils.clip_grad_norm_(state.parameters, state.recipe.clip), state)
        state.optimiser.step()
    state.losses.append(sum(found))


def _losses(state: State, stream: Stream, loss: Loss | StepLoss, found: list[float]) -> Iterator[tuple[int, Tensor]]:
    """Yield the losses of a step, each with its place among those of its batch, and add their values to `found`."""
    device, step, parts = state.parameters[0].device, len(state.losses), state.recipe.accumulate
    for part in range(parts):
        batch = stream.batch(step * parts + part).to(device)
        with precision(device):
            value = loss(scores_of(state.model, batch), batch)
        several = iter((value,)) if isinstance(value, Tensor) else value
        for place in count():
            with precision(device):  # a loss may be computed only here
                one = next(several, None)
            if one is None:
                break
            one = one / parts
            found.append(_finite("the loss", one, state))
            yield place, one


def _finite(what: str, value: Tensor, state: State) -> float:
    number = float(value.detach())
    if not math.isfinite(number):
        step, rate = len(state.losses), state.recipe.learning_rate
        raise Diverged(f"{what} is {number} at step {step}; lower the learning rate ({rate})")
    return number


def _optimiser(model: nn.Module, recipe: Hyperparameters) -> torch.optim.Optimizer:
    """Return AdamW, without weight decay on biases and norms."""
    parameters = list(model.parameters())
    groups = [
        {"params": [parameter for parameter in parameters if parameter.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [parameter for parameter in parameters if parameter.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, recipe.beta2), fused=True)
