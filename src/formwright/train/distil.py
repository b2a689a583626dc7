"""Distillation: a student learns from labels, from a teacher's scores, and from the teacher's hidden states."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.core.errors import IllegalInput
from formwright.nn.build import initialise
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Output
from formwright.train.batch import Batch
from formwright.train.losses import IGNORED, Loss, binary_distillation, distillation, hidden_distance, loss_of

ScoresLoss = Callable[["Answers", Batch, float], Tensor]  # with the temperature


@dataclass(frozen=True)
class Mix:
    """Weigh the three losses; `temperature` softens the scores."""

    labels: float = 1.0
    scores: float = 1.0
    hidden: float = 0.0
    temperature: float = 2.0

    def __post_init__(self) -> None:
        """Refuse a mix that teaches nothing."""
        if min(self.labels, self.scores, self.hidden) < 0 or not self.labels + self.scores + self.hidden:
            raise IllegalInput(f"the weights of a mix are at least 0, and one is above 0; got {self}")
        if self.temperature <= 0:
            raise IllegalInput(f"the temperature must be above 0, not {self.temperature}")


@dataclass(frozen=True)
class Answers:
    """What student and teacher said to one batch; hidden states only where both give theirs."""

    scores: Tensor
    teacher_scores: Tensor
    hidden: Tensor | None = None
    teacher_hidden: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Teaching:
    """A teacher, and how much of its answers a student is to take."""

    teacher: nn.Module
    mix: Mix


class Taught(nn.Module):
    """A model that hears its teacher's answer to every batch while it is trained, and answers alone otherwise.

    Scores alone are compared, so that any two models will do that read the same. The teacher's weights are not changed,
    but go wherever the model is moved.
    """

    def __init__(self, model: nn.Module, teacher: nn.Module) -> None:
        super().__init__()
        self.model = model
        self._teacher = (teacher.eval(),)  # in a tuple: its weights are not the student's to learn or to save

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        """Move the teacher along: torch does not see it in its tuple."""
        self._teacher[0]._apply(fn, recurse)
        return super()._apply(fn, recurse)

    def forward(self, *inputs: Any) -> "Answers | Tensor":
        """Return what both say, or the model alone where it is judged."""
        if not self.training:
            return self.model(*inputs)
        with torch.no_grad():
            wanted = self._teacher[0](*inputs)
        return Answers(self.model(*inputs), wanted)


class Student(nn.Module):
    """A model that is shown its teacher's answer to every batch; the last hidden states meet through a projection.

    The projection is learned with the student, and exists only where their widths differ. The teacher's weights are not
    changed, but go wherever the student is moved.
    """

    def __init__(self, model: TaskModel, teacher: TaskModel, seed: int = 0) -> None:
        super().__init__()
        self.model = model
        self._teacher = (teacher.eval(),)  # in a tuple: the teacher's weights are not the student's to learn or to save
        width, wanted = model.transformer.card.output_width, teacher.transformer.card.output_width
        self.projection = nn.Linear(width, wanted) if width != wanted else None
        if self.projection is not None:
            initialise(self.projection, torch.Generator().manual_seed(seed), "width")

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        """Move the teacher along: torch does not see it in its tuple."""
        self._teacher[0]._apply(fn, recurse)
        return super()._apply(fn, recurse)

    def forward(
        self,
        inputs: Tensor,
        mask: Tensor | None,
        types: Tensor | None,
        targets: Tensor | None,
        targets_mask: Tensor | None,
        positions: Tensor | None,
    ) -> Answers:
        """Return what both say."""
        teacher = self._teacher[0]
        with torch.no_grad():
            shown: Output = teacher.transformer(inputs, mask, types, targets, targets_mask)
            wanted = teacher.answer(shown, mask, positions)
        own: Output = self.model.transformer(inputs, mask, types, targets, targets_mask)
        hidden = own.hidden if self.projection is None else self.projection(own.hidden)
        return Answers(self.model.answer(own, mask, positions), wanted, hidden, shown.hidden)


def distilled(kind: str, mix: Mix) -> Loss:
    """Mix the loss of a kind of task with what the teacher says."""
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
    """Compare (..., labels) scores, where words are labels too; what has no label, as padding, does not count."""
    counts = batch.labels.flatten() != IGNORED
    scores, wanted = (side.flatten(0, -2)[counts] for side in (answers.scores, answers.teacher_scores))
    return distillation(scores, wanted, temperature)


def _of_numbers(answers: Answers, _: Batch, __: float) -> Tensor:
    return F.mse_loss(answers.scores, answers.teacher_scores)


def _of_several_labels(answers: Answers, _: Batch, temperature: float) -> Tensor:
    """Compare what both say of each label, which is a yes or no of its own."""
    return binary_distillation(answers.scores, answers.teacher_scores, temperature)


def _of_spans(answers: Answers, batch: Batch, temperature: float) -> Tensor:
    """Compare where a span begins and where it ends: each is a choice among the real tokens."""
    scores, wanted = (side.transpose(1, 2).flatten(0, 1) for side in (answers.scores, answers.teacher_scores))
    mask = None if batch.mask is None else batch.mask.bool().repeat_interleave(2, 0)  # (batch x 2, tokens)
    return distillation(scores, wanted, temperature, mask)


_LIKENESS: dict[str, ScoresLoss] = {
    "sequence-classification": _of_classes,
    "image-classification": _of_classes,
    "multi-label-classification": _of_several_labels,
    "regression": _of_numbers,
    "span-extraction": _of_spans,
    "masked-lm": _of_classes,
    "causal-lm": _of_classes,
    "seq2seq-lm": _of_classes,
}
