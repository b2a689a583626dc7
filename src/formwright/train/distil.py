"""Distillation: a student learns from labels, from a teacher's scores, and from the teacher's hidden states."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.core.errors import IllegalInput
from formwright.nn.build import initialise
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Output
from formwright.train.losses import Loss, binary_distillation, distillation, hidden_distance, loss_of
from formwright.train.streams import IGNORED, Batch

ScoresLoss = Callable[["Answers", Batch, float], Tensor]  # with the temperature


@dataclass(frozen=True)
class Mix:
    """The weights of the three losses; `temperature` softens the scores."""

    labels: float = 1.0
    scores: float = 1.0
    hidden: float = 0.0
    temperature: float = 2.0

    def __post_init__(self) -> None:
        if min(self.labels, self.scores, self.hidden) < 0 or not self.labels + self.scores + self.hidden:
            raise IllegalInput(f"the weights of a mix must be at least 0, and one above 0; got {self}")
        if self.temperature <= 0:
            raise IllegalInput(f"the temperature must be above 0, not {self.temperature}")


@dataclass(frozen=True)
class Answers:
    """The outputs of student and teacher for one batch; hidden states only if both return theirs."""

    scores: Tensor
    teacher_scores: Tensor
    hidden: Tensor | None = None
    teacher_hidden: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Teaching:
    """A teacher, and the weights of the distillation losses."""

    teacher: nn.Module
    mix: Mix


class _WithTeacher(nn.Module):
    """A model and its frozen teacher, which moves to the same device but is neither trained nor saved."""

    def __init__(self, model: nn.Module, teacher: nn.Module) -> None:
        super().__init__()
        self.model = model
        self._teacher = (teacher.eval(),)  # in a tuple, so that torch does not register its weights

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        """Move the teacher too: torch does not see it in its tuple."""
        self._teacher[0]._apply(fn, recurse)
        return super()._apply(fn, recurse)


class ScoreStudent(_WithTeacher):
    """A model that is trained with its teacher's scores, and behaves as itself in evaluation mode.

    Only scores are compared, so that any two models with the same inputs will do.
    """

    def forward(self, *inputs: Any) -> "Answers | Tensor":
        """Return both models' scores in training mode, the model's own otherwise."""
        if not self.training:
            return self.model(*inputs)
        with torch.no_grad():
            wanted = self._teacher[0](*inputs)
        return Answers(self.model(*inputs), wanted)


class HiddenStudent(_WithTeacher):
    """A model that is trained with its teacher's scores and last hidden states.

    Where their widths differ, a projection that is trained with the student maps the hidden states.
    """

    def __init__(self, model: TaskModel, teacher: TaskModel, seed: int = 0) -> None:
        super().__init__(model, teacher)
        width, wanted = model.transformer.card.output_width, teacher.transformer.card.output_width
        self.projection = nn.Linear(width, wanted) if width != wanted else None
        if self.projection is not None:
            initialise(self.projection, torch.Generator().manual_seed(seed), "width")

    def forward(self, *inputs: Tensor | None) -> Answers:
        """Return the scores and hidden states of both for the inputs of a `TaskModel`, all of them."""
        (*read, positions), mask = inputs, inputs[1]
        model, teacher = cast(TaskModel, self.model), cast(TaskModel, self._teacher[0])
        with torch.no_grad():
            shown: Output = teacher.transformer(*read)
            wanted = teacher.answer(shown, mask, positions)
        own: Output = model.transformer(*read)
        hidden = own.hidden if self.projection is None else self.projection(own.hidden)
        return Answers(model.answer(own, mask, positions), wanted, hidden, shown.hidden)


def distilled(kind: str, mix: Mix) -> Loss:
    """Return the weighted sum of the loss of a kind of task and the distillation losses."""
    loss, likeness = loss_of(kind), _LIKENESS[kind]

    def mixed(answers: Answers, batch: Batch) -> Tensor:
        total = answers.scores.new_zeros(())
        if mix.labels:
            total = total + mix.labels * loss(answers.scores, batch)
        if mix.scores:
            total = total + mix.scores * likeness(answers, batch, mix.temperature)
        if mix.hidden:
            total = total + mix.hidden * _of_hidden(answers, batch)
        return total

    return mixed


def _of_hidden(answers: Answers, batch: Batch) -> Tensor:
    if answers.hidden is None or answers.teacher_hidden is None:
        raise IllegalInput("this student learns from scores alone, as a super-network does: give a Mix with hidden=0")
    mask = batch.mask if batch.targets is None else batch.targets_mask  # hidden states are the decoder's
    return hidden_distance(answers.hidden, answers.teacher_hidden, mask)


def _of_classes(answers: Answers, batch: Batch, temperature: float) -> Tensor:
    """Compare (..., labels) scores, where words are labels too; ignored labels, such as padding, do not count."""
    counts = batch.labels.flatten() != IGNORED
    scores, wanted = (side.flatten(0, -2)[counts] for side in (answers.scores, answers.teacher_scores))
    return distillation(scores, wanted, temperature)


def _of_spans(answers: Answers, batch: Batch, temperature: float) -> Tensor:
    """Compare the start and the end scores of spans, each a choice among the real tokens."""
    scores, wanted = (side.transpose(1, 2).flatten(0, 1) for side in (answers.scores, answers.teacher_scores))
    mask = None if batch.mask is None else batch.mask.bool().repeat_interleave(2, 0)  # (batch x 2, tokens)
    return distillation(scores, wanted, temperature, mask)


_LIKENESS: dict[str, ScoresLoss] = {
    "sequence-classification": _of_classes,
    "image-classification": _of_classes,
    "multi-label-classification": lambda both, _, heat: binary_distillation(both.scores, both.teacher_scores, heat),
    "regression": lambda both, _, __: F.mse_loss(both.scores, both.teacher_scores),
    "span-extraction": _of_spans,
    "masked-lm": _of_classes,
    "causal-lm": _of_classes,
    "seq2seq-lm": _of_classes,
}
