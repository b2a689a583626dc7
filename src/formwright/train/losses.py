"""Losses, and distillation losses."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from formwright.tasks.encode import IGNORED
from formwright.tasks.kind import KINDS
from formwright.train.streams import Batch

Loss = Callable[[Any, Batch], Tensor]  # of the model's output, most often a tensor of scores
StepLoss = Callable[[Any, Batch], Iterator[Tensor]]  # several, each computed when it is asked for: their sum is meant


def classes(scores: Tensor, batch: Batch, smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy of (..., labels) scores, where words are labels too; label -100 is ignored."""
    wanted = batch.labels.flatten()
    if not len(wanted):  # a few rows may have no masked token; the mean over nothing is no number
        return scores.sum()
    return F.cross_entropy(scores.flatten(0, -2), wanted, ignore_index=IGNORED, label_smoothing=smoothing)


def numbers(scores: Tensor, batch: Batch) -> Tensor:
    """Return the mean squared error of one score per sentence."""
    return F.mse_loss(scores[:, 0], batch.labels.to(scores.dtype))


def several_labels(scores: Tensor, batch: Batch) -> Tensor:
    """Return the binary cross-entropy of (batch, labels) scores, averaged over rows and labels."""
    return F.binary_cross_entropy_with_logits(scores, batch.labels.to(scores.dtype))


def spans(scores: Tensor, batch: Batch) -> Tensor:
    """Return the mean cross-entropy of the first and the last token of a span; labels are (batch, 2)."""
    if batch.mask is not None:
        scores = scores.masked_fill(~batch.mask.bool()[:, :, None], float("-inf"))
    start, end = scores.unbind(-1)
    return (F.cross_entropy(start, batch.labels[:, 0]) + F.cross_entropy(end, batch.labels[:, 1])) / 2


def loss_of(kind: str) -> Loss:
    """Return the loss of a kind of task."""
    return KINDS.get(kind).loss


def distillation(student: Tensor, teacher: Tensor, temperature: float = 2.0, mask: Tensor | None = None) -> Tensor:
    """Return T^2 KL(teacher || student) of softened scores (batch, labels), averaged over the batch.

    `mask` is true for the scores that count. The softmax divides by the sum of exponentials; the
    EFTNAS paper's Eq. 6 leaves the exponential out.
    """
    if not len(student):
        return student.sum()  # 0, as there is nothing to compare
    student_log, teacher_log = (_log_shares(scores / temperature, mask) for scores in (student, teacher))
    return F.kl_div(student_log, teacher_log, reduction="batchmean", log_target=True) * temperature**2


def binary_distillation(student: Tensor, teacher: Tensor, temperature: float = 2.0) -> Tensor:
    """Return T^2 KL(teacher || student) of each label's own softened sigmoid, averaged over rows and labels."""
    wanted = torch.sigmoid(teacher / temperature)
    crossed = F.binary_cross_entropy_with_logits(student / temperature, wanted)
    return (crossed - F.binary_cross_entropy_with_logits(teacher / temperature, wanted)) * temperature**2


def _log_shares(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores.log_softmax(-1)
    # masked entries are 0 on both sides: they add nothing, where log(0) - log(0) would be NaN
    return scores.masked_fill(~mask, float("-inf")).log_softmax(-1).masked_fill(~mask, 0.0)


def hidden_distance(student: Tensor, teacher: Tensor, mask: Tensor | None) -> Tensor:
    """Return the mean squared distance of hidden vectors (batch, tokens, width) at real tokens."""
    squares = (student - teacher).square().mean(-1)
    if mask is None:
        return squares.mean()
    weights = mask.to(squares.dtype)
    return (squares * weights).sum() / weights.sum().clamp(min=1)
