"""Importance of each head, channel and hidden unit of a model: first-order scores or magnitudes; and reordering by it.

To first order a weight matters by its product with its gradient. Summed with its sign over the steps of a training that
is movement (EFTNAS, Eq. 3): weights that move away from zero are important. Summed without it over the rows of a
trained model it approximates the change of the loss without the weight. Heads and channels are compared by the mean
over their weights, so that size alone does not make a part important.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.nn.task_model import HeadSpec, TaskModel
from formwright.supernet.groups import Group, Piece, groups, stream_groups
from formwright.train.loop import scores_of
from formwright.train.losses import Loss
from formwright.train.streams import Batch

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Importance:
    """The score of every head and channel, one array for each group of `groups(card)`, in their order.

    Where the hidden size was scored, `hidden` has a score for every number between layers, and `pooled` one for every
    output of a pooler that the head reads.
    """

    scores: tuple[Floats, ...]
    hidden: Floats | None = None
    pooled: Floats | None = None

    def orders(self) -> list[Tensor]:
        """Return for each group its members from the most to the least important; ties keep their order."""
        return [falling(scores) for scores in self.scores]


def falling(scores: Floats) -> Tensor:
    """Return the places of the scores from the highest to the lowest; ties keep their order."""
    return torch.as_tensor(np.argsort(-scores, kind="stable"))


def magnitude(weights: Mapping[str, Tensor], card: Card, head: HeadSpec | None = None) -> Importance:
    """Score by the mean size of the weights, without any training.

    Pass the `head` of the weights to score the hidden size as well.
    """
    scored = [*groups(card), *(stream_groups(card, head) if head is not None else ())]
    found = [[piece.apart(weights[piece.name]).abs() for piece in group.weights] for group in scored]
    return _importance(scored, [_mean([part.sum(1) for part in parts], _counts(parts)) for parts in found])


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
        card = model.transformer.card
        self._groups = [*groups(card), *(stream_groups(card, model.spec) if hidden else ())]
        parameters = dict(model.named_parameters())
        for number, group in enumerate(self._groups):
            device = parameters[group.weights[0].name].device
            self.register_buffer(f"scores_{number}", torch.zeros(group.members, dtype=_exact(device), device=device))
            for piece in group.weights:
                self._watch(number, piece, parameters[piece.name])

    def _watch(self, number: int, piece: Piece, parameter: nn.Parameter) -> None:
        def note(gradient: Tensor) -> None:
            # a negative product means that the step reduces the loss
            change = -gradient * parameter.detach() if self.signed else (gradient * parameter.detach()).abs()
            self.get_buffer(f"scores_{number}").add_(piece.apart(change).sum(1))

        parameter.register_hook(note)  # type: ignore[no-untyped-call]

    def forward(self, *inputs: Any) -> Tensor:
        scores: Tensor = self.model(*inputs)
        return scores

    def importance(self) -> Importance:
        parameters = dict(self.model.named_parameters())
        found = []
        for number, group in enumerate(self._groups):
            counts = _counts([piece.apart(parameters[piece.name]) for piece in group.weights])
            found.append(_mean([self.get_buffer(f"scores_{number}")], counts))
        return _importance(self._groups, found)


def _importance(scored: Sequence[Group], found: Sequence[Floats]) -> Importance:
    layers = tuple(scores for group, scores in zip(scored, found, strict=True) if group.layer >= 0)
    through = {group.kind: scores for group, scores in zip(scored, found, strict=True) if group.layer < 0}
    return Importance(layers, through.get("hidden"), through.get("pooled"))


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
    weights: Mapping[str, Tensor], card: Card, importance: Importance, head: HeadSpec | None = None
) -> dict[str, Tensor]:
    """Return the weights of the same function with the most important parts first.

    Consumers of a part follow it: the output map of attention, the second map of the feed-forward layer, and all that
    the hidden size runs through where that was scored; then `head` must say which head the weights carry. Results
    differ in the last digits, because sums are taken in another order.
    """
    result = dict(weights)
    for group, order in (*zip(groups(card), importance.orders(), strict=True), *_through(card, importance, head)):
        for piece in (*group.weights, *group.biases):
            result[piece.name] = piece.taken(result[piece.name], order)
    return result


def _through(card: Card, importance: Importance, head: HeadSpec | None) -> list[tuple[Group, Tensor]]:
    """List what runs through all layers with its new order."""
    scores = {"hidden": importance.hidden, "pooled": importance.pooled}
    if all(one is None for one in scores.values()):
        return []
    if head is None:
        raise IllegalInput("the hidden size was scored; say which head the weights carry, so that it can follow")
    found = ((group, scores[group.kind]) for group in stream_groups(card, head))
    return [(group, falling(one)) for group, one in found if one is not None]
