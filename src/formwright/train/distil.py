"""Distillation: a student learns from labels, from a teacher's scores, and from the teacher's hidden states.

The outputs of a teacher may be cached: it runs once for every row, and later epochs read the cache.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.core.errors import IllegalInput
from formwright.core.files import write_file
from formwright.nn.build import initialise
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Output
from formwright.tasks.encode import IGNORED
from formwright.tasks.kind import KINDS, kind_of
from formwright.train.judge import batch_of
from formwright.train.loop import enough_memory, scores_of
from formwright.train.losses import (
    LARGE,
    Loss,
    binary_distillation,
    distillation,
    distillation_in_parts,
    hidden_distance,
    loss_of,
)
from formwright.train.prepare import Prepared
from formwright.train.streams import Batch, in_order


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
    loss, distillation_loss = loss_of(kind), KINDS.get(kind).distillation_loss

    def mixed(answers: Answers, batch: Batch) -> Tensor:
        total = answers.scores.new_zeros(())
        taught = None
        if mix.scores:  # before the labels: theirs is then followed back first, and what it keeps is free by then
            taught = mix.scores * distillation_loss(answers, batch, mix.temperature)
        if mix.labels:
            total = total + mix.labels * loss(answers.scores, batch)
        if taught is not None:
            total = total + taught
        if mix.hidden:
            total = total + mix.hidden * _of_hidden(answers, batch)
        return total

    return mixed


def _of_hidden(answers: Answers, batch: Batch) -> Tensor:
    if answers.hidden is None or answers.teacher_hidden is None:
        raise IllegalInput("this student learns from scores alone, as a super-network does: give a Mix with hidden=0")
    mask = batch.mask if batch.targets is None else batch.targets_mask  # hidden states are the decoder's
    return hidden_distance(answers.hidden, answers.teacher_hidden, mask)


def classes_distillation(answers: Answers, batch: Batch, temperature: float) -> Tensor:
    """Compare (..., labels) scores, where words are labels too; ignored labels, such as padding, do not count."""
    counts = batch.labels.flatten() != IGNORED
    scores, wanted = (side.flatten(0, -2) for side in (answers.scores, answers.teacher_scores))
    if scores.numel() > LARGE:
        return distillation_in_parts(scores, wanted, counts, temperature)
    return distillation(scores[counts], wanted[counts], temperature)


def spans_distillation(answers: Answers, batch: Batch, temperature: float) -> Tensor:
    """Compare the start and the end scores of spans, each a choice among the real tokens."""
    scores, wanted = (side.transpose(1, 2).flatten(0, 1) for side in (answers.scores, answers.teacher_scores))
    mask = None if batch.mask is None else batch.mask.bool().repeat_interleave(2, 0)  # (batch x 2, tokens)
    return distillation(scores, wanted, temperature, mask)


def labels_distillation(answers: Answers, _: Batch, temperature: float) -> Tensor:
    """Compare (batch, labels) scores, each label for itself."""
    return binary_distillation(answers.scores, answers.teacher_scores, temperature)


def numbers_distillation(answers: Answers, _: Batch, __: float) -> Tensor:
    """Compare one score per row."""
    return F.mse_loss(answers.scores, answers.teacher_scores)


_ROWS = 64  # rows of one batch


class CachedTeacher(nn.Module):
    """Return a teacher's outputs, from the cache where the row is known; the key of a row is the model's input."""

    def __init__(self, teacher: nn.Module, answers: dict[bytes, Tensor]) -> None:
        super().__init__()
        self.teacher = teacher
        self._answers = answers

    def forward(self, inputs: Tensor, mask: Tensor | None = None, types: Tensor | None = None, *more: Any) -> Tensor:
        """Return (batch, labels) scores; those of each token are (batch, tokens, ...)."""
        found = [self._answers.get(key) for key in _keys(Batch(inputs, inputs, mask, types))]
        known = [answer for answer in found if answer is not None]
        if len(known) < len(found):
            return self.teacher(inputs, mask, types, *more)
        return nn.utils.rnn.pad_sequence(known, batch_first=True).to(inputs.device)


def cached_teacher(
    teacher: nn.Module, prepared: Prepared, path: Path, after: Callable[[int], None] = lambda _: None
) -> CachedTeacher:
    """Return a teacher whose outputs for the training rows are read from `path`, or computed and saved there.

    The order of rows does not depend on the training, so that a resumed run gets the same outputs. `after` receives the
    number of rows computed so far.
    """
    if path.is_file():
        try:
            answers = load_file(path)
        except (OSError, SafetensorError) as error:
            raise IllegalInput(f"cannot read {path}: {error}; delete it to run the teacher again") from None
    else:
        answers = _asked(teacher, prepared, after)
        write_file(path, save(answers))
    flat, sizes = answers["answers"], answers["sizes"].tolist()
    by_row, table = flat.split(sizes), dict[bytes, Tensor]()
    for rows in in_order(prepared.train.examples, _ROWS):
        keys = _keys(batch_of(prepared, prepared.train, rows))
        for row, key in zip(rows.tolist(), keys, strict=True):
            table[key] = by_row[row] if kind_of(prepared.task).per_token else by_row[row][0]
    return CachedTeacher(teacher, table)


def _asked(teacher: nn.Module, prepared: Prepared, after: Callable[[int], None]) -> dict[str, Tensor]:
    """Compute the outputs of all rows, concatenated, and the size of each row's part."""
    device, per_token = next(teacher.parameters()).device, kind_of(prepared.task).per_token
    found = dict[int, Tensor]()
    teacher.eval()
    with torch.inference_mode(), enough_memory(f"while running the teacher, {_ROWS} rows at once"):
        for rows in in_order(prepared.train.examples, _ROWS):
            batch = batch_of(prepared, prepared.train, rows)
            for row, scores, tokens in zip(
                rows.tolist(), scores_of(teacher, batch.to(device)).float().cpu(), _lengths(batch), strict=True
            ):
                found[row] = scores[:tokens] if per_token else scores[None]
            after(len(found))
    ordered = [found[row] for row in range(len(found))]
    return {"answers": torch.cat(ordered).clone(), "sizes": torch.tensor([len(one) for one in ordered])}


def _lengths(batch: Batch) -> list[int]:
    if batch.mask is None:
        return [batch.inputs.shape[1]] * len(batch.inputs)
    return batch.mask.sum(1).tolist()


def _keys(batch: Batch) -> list[bytes]:
    """Return the bytes of each row's input without its padding, which is on the right; pictures have none."""
    inputs = batch.inputs.cpu().numpy()
    types = None if batch.types is None else batch.types.cpu().numpy()
    keys = []
    for row, tokens in enumerate(_lengths(batch)):
        parts = [inputs[row, :tokens]] if types is None else [inputs[row, :tokens], types[row, :tokens]]
        keys.append(b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
    return keys
