"""Common parts of evaluators that train: building, training, accounting and storing weights."""

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import save
from torch import nn

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.files import write_file
from formwright.core.records import Budget, Observation, Request, Spent
from formwright.cost import macs
from formwright.evaluate.context import Context, card_of
from formwright.nn.task_model import TaskModel
from formwright.tasks.task import Task
from formwright.tasks.tokeniser import Tokeniser
from formwright.train import checkpoint
from formwright.train.fit import Run, Trained, Training, fit, fresh_model
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import Saving, enough_memory
from formwright.train.prepare import Prepared, prepare
from formwright.train.streams import Shuffled

WEIGHTS = "weights"  # the name of the artifact
SHA256 = "weights sha256"  # and that of its checksum
OUTSIDE = "before the first step, or while judging the model"  # where memory may run out other than in a step
Start = Callable[[Card, Prepared, Training], TaskModel]  # gives the initial model


@dataclass(frozen=True)
class Trainer:
    """Train cards on a task; equal cards, seeds and trainings give equal scores."""

    task: Task
    training: Training
    tokeniser: Tokeniser | None = None

    def evaluate(self, request: Request, context: Context) -> Observation:
        """Score a card by training it to the end of the recipe, whatever the budget."""
        return self.observe(Request(request.card, Budget.full()), context)

    def observe(
        self, request: Request, context: Context, start: Start = fresh_model, *, resumable: bool = False
    ) -> Observation:
        """Train the card of a request within its budget, and store the weights where there is a folder.

        `resumable` runs write a checkpoint and resume from that of an earlier run of the same card, unless it is beyond
        the budget. A model without finite scores raises `EvaluationFailed`.
        """
        began = time.perf_counter()
        card = card_of(request)
        training = self.seeded(context)
        prepared = prepare(self.task, card, training.length, self.tokeniser)
        key, until = self.key(card, prepared, training), request.budget.steps
        folder = context.folder / "runs" / key if resumable and context.folder else None
        if folder is not None and until is not None and checkpoint.newest_step(folder) > until:
            folder = None  # a model trained further cannot score a shorter training
        with enough_memory(OUTSIDE):
            model = start(card, prepared, training)
            trained = fit(model, prepared, training, Run(Saving(folder) if folder else None, until, context.after_step))
        require_finite_scores(trained.metrics, len(trained.losses))
        steps = len(trained.losses) - trained.before
        spent = Spent(time.perf_counter() - began, steps, training_macs(card, prepared, training, steps))
        return Observation(trained.metrics, spent, _kept(key, trained, context))

    def seeded(self, context: Context) -> Training:
        return replace(self.training, recipe=replace(self.training.recipe, seed=context.seed))

    def key(self, card: Card, prepared: Prepared, training: Training) -> str:
        """Return the key of a run, from everything that determines it except the initial weights."""
        facts = (card.digest, self.task.name, prepared.digests, asdict(training))
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Staged:
    """Score a card after as many steps as its budget says; a later request resumes from the stored checkpoint.

    The learning rate follows the whole recipe, so that training in stages is, bit for bit, training in one go. The
    steps spent are those since the previous stage.
    """

    trainer: Trainer

    def evaluate(self, request: Request, context: Context) -> Observation:
        steps, most = request.budget.steps, self.trainer.training.recipe.steps
        if steps is not None and not 1 <= steps <= most:
            raise IllegalInput(f"the recipe trains 1 to {most} steps; a budget of {steps} is outside")
        if context.folder is None:
            raise IllegalInput("training in stages needs a folder for its checkpoints; give the context one")
        return self.trainer.observe(request, context, resumable=True)


def _kept(key: str, trained: Trained, context: Context) -> dict[str, str]:
    if context.folder is None:
        return {}
    # named by the steps too, so that a later stage does not overwrite the weights of an earlier observation
    path = context.folder / "weights" / f"{key}-{len(trained.losses)}.safetensors"
    content = weights_of(trained.model)
    write_file(path, content)
    return {WEIGHTS: str(path.relative_to(context.folder)), SHA256: hashlib.sha256(content).hexdigest()}


def weights_of(model: nn.Module) -> bytes:
    """Return the parameters of a model, each once, as the content of a safetensors file."""
    tensors = {name: parameter.detach().contiguous() for name, parameter in model.named_parameters()}
    return save(tensors, {"format": "pt"})


def require_finite_scores(metrics: Mapping[str, float], steps: int, where: str = "validation") -> None:
    """Raise `EvaluationFailed` where a score is NaN or infinite after `steps` steps."""
    for name, value in metrics.items():
        if not math.isfinite(value):
            raise EvaluationFailed(f"the {name} on {where} is {value} after step {steps - 1}")


def training_macs(card: Card, prepared: Prepared, training: Training, steps: int) -> int:
    """Count the MACs of a training, with rows padded to the mean length of their batches."""
    return macs_of_steps(card, prepared.train.examples.lengths, training.recipe, steps)


def macs_of_steps(card: Card, lengths: NDArray[np.int64], recipe: Hyperparameters, steps: int) -> int:
    """Count the MACs of steps on rows of these lengths; a backward pass costs about two forward passes."""
    order = Shuffled(lengths, recipe.batch, recipe.seed)
    rows = recipe.accumulate * len(lengths) / order.batches_per_epoch  # of one step; the last batch may be smaller
    return steps * round(3 * rows * macs(card, round(order.padded_length)))
