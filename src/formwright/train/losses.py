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
    if not (wanted != IGNORED).any():  # a few rows may have no label that counts; the mean over nothing is no number
        return 0.0 * scores.sum()
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


LARGE = 1 << 18  # numbers of scores above which their shares are computed in parts
_PART = 1 << 16  # numbers of a part


def distillation_in_parts(student: Tensor, teacher: Tensor, counts: Tensor, temperature: float = 2.0) -> Tensor:
    """Return what `distillation` does for the rows that `counts`, some rows at a time.

    For scores of all words the softened shares of both sides would take several times the memory of the scores. No
    gradient goes to the teacher.
    """
    total: Tensor = _Divergence.apply(student, teacher, counts, temperature)
    return total / counts.sum().clamp(min=1)


class _Divergence(torch.autograd.Function):
    """T^2 KL(teacher || student), summed over rows; shares are computed again for the gradient, and never kept."""

    @staticmethod
    def forward(ctx: Any, student: Tensor, teacher: Tensor, counts: Tensor, temperature: float) -> Tensor:
        ctx.save_for_backward(student, teacher, counts)
        ctx.temperature = temperature
        total = student.new_zeros((), dtype=_precise(student))
        for mine, its, real in _in_parts(student, teacher, counts):
            student_log, teacher_log = (_softened(scores[real], temperature).log_softmax(-1) for scores in (mine, its))
            total += F.kl_div(student_log, teacher_log, reduction="sum", log_target=True)
        return total * temperature**2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        student, teacher, counts = ctx.saved_tensors
        found = torch.zeros_like(student)
        for place, mine, its, real in _in_parts(found, student, teacher, counts):
            # d/ds T^2 KL = T (softmax(s / T) - softmax(t / T))
            shares, wanted = (_softened(scores[real], ctx.temperature).softmax(-1) for scores in (mine, its))
            place[real] = ((shares - wanted) * (gradient * ctx.temperature)).to(place.dtype)
        return found, None, None, None


def _in_parts(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    rows = max(1, _PART // tensors[0].shape[-1])
    return zip(*(tensor.split(rows) for tensor in tensors), strict=True)


def _softened(scores: Tensor, temperature: float) -> Tensor:
    return scores.to(_precise(scores)) / temperature


def _precise(scores: Tensor) -> torch.dtype:
    return torch.promote_types(scores.dtype, torch.float32)  # half precision loses the smallest shares


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
