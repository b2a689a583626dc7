"""What evaluators that train have in common: building, training, accounting and keeping the weights."""

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import Observation, Request, Spent
from formwright.cost import macs
from formwright.evaluate.context import Context
from formwright.nn.hf.save import save_tensors
from formwright.nn.task_model import TaskModel
from formwright.tasks.task import Task
from formwright.tasks.tokeniser import Tokeniser
from formwright.train import checkpoint
from formwright.train.fit import Run, Trained, Training, fit, fresh_model
from formwright.train.loop import Saving
from formwright.train.prepare import Prepared, prepare

WEIGHTS = "weights"  # the name of the artifact


@dataclass(frozen=True)
class Trainer:
    """Train cards on a task; equal cards, seeds and trainings give equal scores."""

    task: Task
    training: Training
    tokeniser: Tokeniser | None = None

    def observe(
        self,
        request: Request,
        context: Context,
        start: Callable[[Card, Prepared, Training], TaskModel] = fresh_model,
        *,
        resumable: bool = False,
    ) -> Observation:
        """Train the card of a request within its budget, and keep the weights where there is a folder.

        `resumable` runs leave a checkpoint, and go on from the one that an earlier run of the same card left, unless
        that one is beyond the budget. What cannot be scored raises `EvaluationFailed`.
        """
        began = time.perf_counter()
        card = card_of(request)
        training = self.seeded(context)
        prepared = prepare(self.task, card, training.length, self.tokeniser)
        folder = context.folder / "runs" / self.key(card, training) if resumable and context.folder else None
        before, until = 0 if folder is None else _steps_done(folder), request.budget.steps
        if until is not None and before > until:
            folder, before = None, 0  # a model that was trained further says nothing of one trained less
        with _memory_as_failure():
            model = start(card, prepared, training)
            trained = fit(model, prepared, training, Run(Saving(folder) if folder else None, until, context.after_step))
        _refuse_scores(trained)
        steps = len(trained.losses) - before
        spent = Spent(time.perf_counter() - began, steps, _training_macs(card, prepared, training, steps))
        return Observation(trained.metrics, spent, self._kept(card, trained, training, context))

    def seeded(self, context: Context) -> Training:
        """Give the training with the seed of a context."""
        return replace(self.training, recipe=replace(self.training.recipe, seed=context.seed))

    def key(self, card: Card, training: Training) -> str:
        """Name a run by everything that decides it."""
        facts = (card.digest, self.task.name, asdict(training), self.tokeniser.digest if self.tokeniser else None)
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]

    def _kept(self, card: Card, trained: Trained, training: Training, context: Context) -> dict[str, str]:
        if context.folder is None:
            return {}
        # named by the steps too, so that a later stage leaves what an earlier observation speaks of as it was
        name = f"{self.key(card, training)}-{len(trained.losses)}.safetensors"
        path = context.folder / "weights" / name
        write_weights(trained.model, path)
        return {WEIGHTS: str(path.relative_to(context.folder))}


def card_of(request: Request) -> Card:
    """Give the card of a request, which must be one of ours to be trained."""
    if not isinstance(request.card, Card):
        raise IllegalInput(f"only a formwright card can be trained, not a {type(request.card).__name__}")
    return request.card


def write_weights(model: TaskModel, path: Path) -> None:
    """Write the parameters of a model, each once, in a file that is whole or not there at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{os.getpid()}.{path.name}")
    save_tensors(dict(model.named_parameters()), draft)
    draft.replace(path)


@contextmanager
def _memory_as_failure() -> Iterator[None]:
    """Turn a lack of memory outside the steps of training, which report their own, into a failure."""
    try:
        yield
    except EvaluationFailed:
        raise
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not _lacks_memory(error):
            raise
        raise EvaluationFailed("the memory was used up before the first step, or while judging the model") from error


def _lacks_memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)  # torch's words on a CPU


def _refuse_scores(trained: Trained) -> None:
    for name, value in trained.metrics.items():
        if not math.isfinite(value):
            raise EvaluationFailed(f"the {name} on validation is {value} after step {len(trained.losses) - 1}")


def _steps_done(folder: Path) -> int:
    found = checkpoint.newest(folder)
    return found.step if found else 0


def _training_macs(card: Card, prepared: Prepared, training: Training, steps: int) -> int:
    """Count what training computed: a backward pass costs about two forward passes."""
    length = prepared.length or 1
    return 3 * steps * training.recipe.batch * training.recipe.accumulate * macs(card, length)
