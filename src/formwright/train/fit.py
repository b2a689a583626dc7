"""Train a card on a task: from a design to a model with scores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.nn.build import Spread, build
from formwright.nn.settings import Settings
from formwright.nn.task_model import HeadSpec, SequenceHead, TaskModel
from formwright.tasks.bootstrap import Tables
from formwright.tasks.metrics import metric
from formwright.tasks.rows import TextRows
from formwright.tasks.task import Task
from formwright.train.device import choose_device, threads
from formwright.train.distil import HiddenStudent, ScoreStudent, Teaching, distilled
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.judge import judge, judged
from formwright.train.loop import PATIENCE, EarlyStopping, Saving, begin, go_on, usual_every
from formwright.train.losses import loss_of
from formwright.train.masking import Masked, Masking
from formwright.train.prepare import Prepared
from formwright.train.streams import Shuffled, Stream, lengths_of, stream_of


@dataclass(frozen=True)
class Training:
    """How a card is trained: hyperparameters, tokens per row, dropout, initial weights, device and threads.

    `judge_every` and `patience` enable early stopping: the model is evaluated on the validation set every `judge_every`
    steps, and the best weights are kept. Training never stops before step `least`.
    """

    recipe: Hyperparameters
    length: int = 64
    settings: Settings = field(default_factory=lambda: Settings(dropout=0.0))
    spread: Spread = "width"
    device: str = "auto"
    threads: int = 1
    judge_every: int | None = None
    patience: int = 3
    least: int = 0

    def stopping_early(self, rows: int) -> "Training":
        """Return this training with early stopping on `rows` validation rows.

        It runs for at least half of its steps: a small model may stay on a plateau at first. If evaluations would take
        too long for so few steps, only the last step is evaluated.
        """
        every = usual_every(self.recipe, rows)
        often = every if every < self.recipe.steps else None
        return replace(self, judge_every=often, patience=PATIENCE, least=self.recipe.steps // 2)


@dataclass(frozen=True)
class Trained:
    """A trained model, the loss of every step, and its scores on validation by name.

    `seconds` is the time of all steps, including those before an interruption; `before` counts the steps of earlier
    runs. The weights are those after `best_step` steps. `tables` hold the contribution of each validation row.
    """

    model: TaskModel
    losses: list[float]
    metrics: Mapping[str, float]
    seconds: float = 0.0
    before: int = 0
    best_step: int = 0
    tables: Tables = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """Control of one run of a training: where it is saved, at which step it stops, and a callback after each step."""

    saving: Saving | None = None
    until: int | None = None
    after_step: Callable[[int, float], None] | None = field(default=None, compare=False)


def head_of(task: Task) -> HeadSpec:
    """Return the head of a task."""
    if task.kind == "regression":
        return HeadSpec("sequence-classification", 1)
    labels = max(len(task.labels), 1)
    if task.kind == "multi-label-classification":
        return HeadSpec("sequence-classification", labels, multi_label=True)
    return HeadSpec("sequence-classification" if task.kind == "image-classification" else task.kind, labels)


def fresh_model(card: Card, prepared: Prepared, training: Training) -> TaskModel:
    """Build a model of a card with new weights and the head of a task."""
    model = build(card, training.settings, head_of(prepared.task), training.recipe.seed, training.spread)
    assert isinstance(model, TaskModel)
    start_at_mean(model, prepared)
    return model


def start_at_mean(model: TaskModel, prepared: Prepared) -> None:
    """Set the bias of a new regression head to the mean score, which it would otherwise spend its first steps on."""
    rows = prepared.train.rows
    if prepared.task.kind == "regression" and isinstance(rows, TextRows):
        with torch.no_grad():
            cast(SequenceHead, model.head).output.bias.fill_(float(np.mean(rows.labels)))


def with_weights(model: TaskModel, weights: Mapping[str, Tensor]) -> TaskModel:
    """Load the weights of a transformer, such as from pretraining, below a model's head; none may be missing."""
    own = model.transformer.state_dict()
    missing = sorted(own.keys() - weights.keys())
    if missing:
        raise IllegalInput(f"the weights lack {len(missing)} tensors of this card, the first being {missing[0]}")
    for name, tensor in own.items():
        if weights[name].shape != tensor.shape:
            shapes = f"{tuple(weights[name].shape)}, the card's {tuple(tensor.shape)}"
            raise IllegalInput(f"the weights are of another card: the shape of {name} is {shapes}")
    model.transformer.load_state_dict({name: weights[name] for name in own})
    return model


def fit(
    model: TaskModel, prepared: Prepared, training: Training, run: Run | None = None, teaching: Teaching | None = None
) -> Trained:
    """Train a model on a task, with distillation if there is a teacher, and score it on the validation rows."""
    run = run or Run()
    task, recipe = prepared.task, training.recipe
    student: nn.Module = model
    if teaching is not None and teaching.mix.hidden:
        student = HiddenStudent(model, cast(TaskModel, teaching.teacher), recipe.seed)
    elif teaching is not None:  # hidden states are compared only if they have a weight in the mix
        student = ScoreStudent(model, teaching.teacher)
    loss = loss_of(task.kind) if teaching is None else distilled(task.kind, teaching.mix)
    student.to(choose_device(training.device))
    with threads(training.threads):
        state, watch = begin(student, recipe, run.saving), _early_stopping(prepared, training)
        before, stream = len(state.losses), task_stream(prepared, recipe)
        go_on(state, stream, loss, run.saving, run.after_step, until=run.until, watch=watch)
        found = judged(model, prepared, prepared.validation)
    return Trained(model.eval(), state.losses, found.metrics, state.seconds, before, state.best_step, found.tables)


def task_stream(prepared: Prepared, recipe: Hyperparameters) -> Stream:
    """Return the stream of training batches."""
    examples = prepared.train.examples
    if prepared.task.kind == "masked-lm":
        masking = Masking.of(prepared.text_tokeniser)
        return Masked(examples, Shuffled(lengths_of(examples), recipe.batch, recipe.seed), masking)  # type: ignore[arg-type]
    return stream_of(prepared.task.kind, examples, recipe.batch, recipe.seed)


def _early_stopping(prepared: Prepared, training: Training) -> EarlyStopping | None:
    """Return early stopping by the deciding metric alone: others may take much longer to compute."""
    if training.judge_every is None:
        return None
    deciding = metric(prepared.task.metric)
    sign = 1 if deciding.direction == "max" else -1
    quick = replace(prepared, task=replace(prepared.task, metrics=(deciding.name,)))

    def score(model: nn.Module) -> float:
        one = model.model if isinstance(model, ScoreStudent | HiddenStudent) else model
        return sign * judge(one, quick, quick.validation)[deciding.name]

    return EarlyStopping(score, training.judge_every, training.patience, training.least)
