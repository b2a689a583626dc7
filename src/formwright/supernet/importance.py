"""Importance of each head, channel and hidden unit of a model: first-order scores or magnitudes; and reordering by it.

To first order a weight matters by its product with its gradient. Summed with its sign over the steps of a training that
is movement (EFTNAS, Eq. 3): weights that move away from zero are important. Summed without it over the rows of a
trained model it approximates the change of the loss without the weight. Heads and channels are compared by the mean
over their weights, so that size alone does not make a part important.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec
from formwright.nn.task_model import TaskModel
from formwright.supernet.groups import Group, MemberAxis, groups, stream_groups
from formwright.train.loop import scores_of
from formwright.train.losses import Loss
from formwright.train.streams import Batch

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Importance:
    """The score of every head and channel, one array for each group of `groups(card)`, in their order.

    Where hidden sizes were scored, `through` has an array for each group of `stream_groups`, by its kind.
    """

    scores: tuple[Floats, ...]
    through: Mapping[str, Floats] = field(default_factory=dict)

    def orders(self) -> list[Tensor]:
        """Return for each group its members from the most to the least important; ties keep their order."""
        return [falling(scores) for scores in self.scores]


def falling(scores: Floats) -> Tensor:
    """Return the places of the scores from the highest to the lowest; ties keep their order."""
    return torch.as_tensor(np.argsort(-scores, kind="stable"))


def magnitude(weights: Mapping[str, Tensor], card: Card, head: HeadSpec | None, hidden: bool = False) -> Importance:
    """Score by the mean size of the weights, without any training; `head` is the head that the weights carry.

    `hidden` scores the hidden size as well.
    """
    scored = _scored(card, head, hidden)
    found = [[axis.apart(weights[axis.name]).abs() for axis in group.weights] for group in scored]
    return _importance(scored, [_mean([part.sum(1) for part in parts], _counts(parts)) for parts in found])


def _scored(card: Card, head: HeadSpec | None, hidden: bool) -> list[Group]:
    return [*groups(card, head), *(stream_groups(card, head) if hidden else ())]


def first_order(model: TaskModel, batches: Iterable[Batch], loss: Loss, hidden: bool = False) -> Importance:
    """Score a trained model by how much its loss on some batches would change without each weight, to first order.

    The model is left as it was. `hidden` scores the hidden size as well.
    """
    watched = ImportanceTracker(copy.deepcopy(model), hidden, signed=False).eval()
    for batch in batches:
        watched.zero_grad(set_to_none=True)
        loss(scores_of(watched, batch), batch).backward()  # type: ignore[no-untyped-call]
    return watched.importance()


def balanced(importance: Importance, share: float) -> Importance:
    """Normalise scores by layer: not at all with a `share` of 0, fully with 1.

    Gradients differ in scale between layers; without this, whole layers would be removed before others lose a channel.
    """
    scores = tuple(one / max(float(one.mean()), np.finfo(np.float64).tiny) ** share for one in importance.scores)
    return replace(importance, scores=scores)


class ImportanceTracker(nn.Module):
    """A model whose heads and channels, and with `hidden` its hidden size, are scored while it is trained.

    It is trained as the model itself is. The scores are buffers, so that checkpoints keep them. They are movement or,
    where they are not `signed`, sizes.
    """

    def __init__(self, model: TaskModel, hidden: bool = False, signed: bool = True) -> None:
        super().__init__()
        self.model = model
        self.signed = signed
        self._groups = _scored(model.transformer.card, model.spec, hidden)
        parameters = dict(model.named_parameters())
        for number, group in enumerate(self._groups):
            device = parameters[group.weights[0].name].device
            self.register_buffer(f"scores_{number}", torch.zeros(group.members, dtype=_exact(device), device=device))
            for axis in group.weights:
                self._watch(number, axis, parameters[axis.name])

    def _watch(self, number: int, axis: MemberAxis, parameter: nn.Parameter) -> None:
        def note(gradient: Tensor) -> None:
            # a negative product means that the step reduces the loss
            change = -gradient * parameter.detach() if self.signed else (gradient * parameter.detach()).abs()
            self.get_buffer(f"scores_{number}").add_(axis.apart(change).sum(1))

        parameter.register_hook(note)  # type: ignore[no-untyped-call]

    def forward(self, *inputs: Any) -> Tensor:
        scores: Tensor = self.model(*inputs)
        return scores

    def importance(self) -> Importance:
        parameters = dict(self.model.named_parameters())
        found = []
        for number, group in enumerate(self._groups):
            counts = _counts([axis.apart(parameters[axis.name]) for axis in group.weights])
            found.append(_mean([self.get_buffer(f"scores_{number}")], counts))
        return _importance(self._groups, found)


def _importance(scored: Sequence[Group], found: Sequence[Floats]) -> Importance:
    layers = tuple(scores for group, scores in zip(scored, found, strict=True) if group.layer >= 0)
    return Importance(layers, {group.kind: one for group, one in zip(scored, found, strict=True) if group.layer < 0})


def _exact(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type == "mps" else torch.float64


def _counts(parts: list[Tensor]) -> int:
    return sum(part.shape[1] for part in parts)


def _mean(sums: list[Tensor], count: int) -> Floats:
    # to the CPU first: MPS has no float64
    total: Floats = torch.stack([part.detach().cpu().to(torch.float64) for part in sums]).sum(0).numpy() / count
    return total


def uniform(card: Card) -> Importance:
    """Return equal scores, which keep the order: the baseline of the other scores."""
    return Importance(tuple(np.zeros(group.members) for group in groups(card)))


def reordered(
    weights: Mapping[str, Tensor], card: Card, importance: Importance, head: HeadSpec | None
) -> dict[str, Tensor]:
    """Return the weights of the same function with the most important parts first; `head` is the head that they carry.

    Consumers of a part follow it: the output map of attention, the second map of the feed-forward layer, and all that
    a hidden size runs through where that was scored. Results differ in the last digits, because sums are taken in
    another order.
    """
    result = dict(weights)
    moved = list(zip(groups(card, head), importance.orders(), strict=True))
    if importance.through:
        known = ((group, importance.through.get(group.kind)) for group in stream_groups(card, head))
        moved += [(group, falling(scores)) for group, scores in known if scores is not None]
    for group, order in moved:
        for axis in (*group.weights, *group.biases):
            result[axis.name] = axis.taken(result[axis.name], order)
    return result
