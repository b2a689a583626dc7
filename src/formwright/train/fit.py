"""Train a card on a task: from a design to a model with scores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec
from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.hf.checkpoint_files import CONFIG, read_json
from formwright.nn.hf.imported import MULTI_LABEL, Imported
from formwright.nn.settings import Settings, Spread
from formwright.nn.task_model import SequenceHead, TaskModel
from formwright.tasks.bootstrap import Tables
from formwright.tasks.kind import kind_of
from formwright.tasks.metrics import metric
from formwright.tasks.task import Task
from formwright.train.augment import Augmented
from formwright.train.device import choose_device, threads
from formwright.train.distil import HiddenStudent, ScoreStudent, Teaching, distilled
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.judge import judge, judged
from formwright.train.loop import PATIENCE, EarlyStopping, Saving, begin, go_on, usual_every
from formwright.train.losses import loss_of
from formwright.train.prepare import Prepared
from formwright.train.streams import Shuffled, Stream

_PRETRAINED = ("ForPreTraining", "ForMaskedLM", "ForMaskedImageModeling")  # the ends of class names


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
    kind = kind_of(task)
    return HeadSpec(kind.head, kind.outputs or max(len(task.labels), 1), kind.multi_label)


def fresh_model(card: Card, prepared: Prepared, training: Training) -> TaskModel:
    """Build a model of a card with new weights and the head of a task."""
    model = build(card, training.settings, head_of(prepared.task), training.recipe.seed, training.spread)
    assert isinstance(model, TaskModel)
    start_at_mean(model, prepared)
    return model


def start_at_mean(model: TaskModel, prepared: Prepared) -> None:
    """Set the bias of a new regression head to the mean score, which it would otherwise spend its first steps on."""
    if kind_of(prepared.task).outputs == 1:
        with torch.no_grad():
            cast(SequenceHead, model.head).output.bias.fill_(float(np.mean(prepared.train.rows.labels)))


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


def task_model(imported: Imported, prepared: Prepared, training: Training) -> TaskModel:
    """Build a model for a task from imported weights; its head is kept if it fits the task."""
    model = fresh_model(imported.card, prepared, training)
    if imported.head is None:
        return with_weights(model, imported.weights)
    if head_fits(imported, prepared.task):
        model.load_state_dict(dict(imported.weights))
        return model
    own = {name: tensor for name, tensor in imported.weights.items() if name.startswith("transformer.")}
    return with_weights(model, {name.removeprefix("transformer."): tensor for name, tensor in own.items()})


def head_fits(imported: Imported, task: Task) -> bool:
    """Return whether the head of a model has the kind and the labels of a task."""
    wanted, labels = head_of(task), task.labels
    if imported.head is None or imported.head.task != wanted.task:
        return False
    if not wanted.has_names:
        return True
    named = imported.labels if labels else ()  # a regression's only label has a name that means nothing
    return imported.head == wanted and named in ((), labels)


def replaced_head(imported: Imported, task: Task, folder: Path) -> str:
    """Explain why the head of a model is replaced; empty if it is kept or was a pretraining head.

    Raise for a multi-label model and a single-label task: its scores do not rank the labels.
    """
    config, wanted = read_json(folder / CONFIG), head_of(task)
    if config.get("problem_type") == MULTI_LABEL and not wanted.multi_label:
        raise IllegalInput(
            f"{folder} is a multi-label model, and a row of {task.name} has one answer: give a multi-label task, or "
            "the model that it was fine-tuned from"
        )
    if head_fits(imported, task) or (imported.head is not None and imported.head.plain_text):
        return ""
    if imported.head is not None and imported.head.task == wanted.task and wanted.multi_label:
        why = f"it is not a multi-label head for {', '.join(task.labels)}"
    elif imported.head is not None and imported.head.task == wanted.task:
        own = ", ".join(imported.labels) or str(imported.head.labels)
        why = f"its labels are {own}, those of the task {', '.join(task.labels) or 'numbers'}"
    else:
        known = config.get("architectures")
        name = str(known[0]) if isinstance(known, list) and known else ""
        if imported.head is None and ("For" not in name or name.endswith(_PRETRAINED)):  # it has no fine-tuned head
            return ""
        what = name if imported.head is None else imported.head.task
        why = f"it is one for {what}, and the task is {task.kind}"
    return f"the head of {folder.name} is replaced by a new one: {why}"


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
    order = Shuffled(prepared.train.examples.lengths, recipe.batch, recipe.seed)
    kind = kind_of(prepared.task)
    stream = cast(Stream, kind.stream(prepared, order))
    if not recipe.changes:
        return stream
    strange = [name for name in recipe.changes if name not in kind.augmentations]
    if strange:
        raise IllegalInput(
            f"training.augment has {', '.join(strange)}, which cannot change the rows of {prepared.task.name} "
            f"({kind.name}): {'use ' + ', '.join(kind.augmentations) if kind.augmentations else 'leave it out'}"
        )
    return Augmented(stream, recipe.seed, recipe.changes)


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
