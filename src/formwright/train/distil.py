"""Distillation: a student learns from labels, from a teacher's scores, and from the teacher's hidden states."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from formwright.core.errors import IllegalInput
from formwright.nn.build import initialise
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Output
from formwright.train.batch import Batch
from formwright.train.losses import Loss, distillation, hidden_distance


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
    """What student and teacher said to one batch."""

    scores: Tensor
    teacher_scores: Tensor
    hidden: Tensor
    teacher_hidden: Tensor


class Student(nn.Module):
    """A model that is shown its teacher's answer to every batch; the last hidden states meet through a projection.

    The projection is learned with the student, and exists only where their widths differ. The teacher is not changed.
    """

    def __init__(self, model: TaskModel, teacher: TaskModel, seed: int = 0) -> None:
        super().__init__()
        self.model = model
        self._teacher = (teacher.eval(),)  # in a tuple: the teacher's weights are not the student's to learn or to save
        width, wanted = model.transformer.card.output_width, teacher.transformer.card.output_width
        self.projection = nn.Linear(width, wanted) if width != wanted else None
        if self.projection is not None:
            initialise(self.projection, torch.Generator().manual_seed(seed), "width")

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


def distilled(loss: Loss, mix: Mix) -> Loss:
    """Mix the loss of a task with what the teacher says."""

    def mixed(answers: Answers, batch: Batch) -> Tensor:
        total = answers.scores.new_zeros(())
        if mix.labels:
            total = total + mix.labels * loss(answers.scores, batch)
        if mix.scores:
            scores, wanted = answers.scores.flatten(0, -2), answers.teacher_scores.flatten(0, -2)
            total = total + mix.scores * distillation(scores, wanted, mix.temperature)
        if mix.hidden:
            total = total + mix.hidden * hidden_distance(answers.hidden, answers.teacher_hidden, batch.mask)
        return total

    return mixed
