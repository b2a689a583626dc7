"""How much each head and channel of a model matters: first-order movement scores, or sizes of weights.

The score of a weight is what the loss would lose if the weight moved to zero, summed over the steps of a training
(EFTNAS, Eq. 3, after movement pruning). Heads and channels are compared by the mean over their weights, so that a large
part does not count for more because it is large.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.nn.task_model import TaskModel
from formwright.supernet.parts import Piece, groups

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Importance:
    """The score of every head and channel, one array for each group of `groups(card)`, in their order."""

    scores: tuple[Floats, ...]

    def orders(self) -> list[Tensor]:
        """Give for each group its members from the most to the least important; equal ones stay as they stand."""
        return [torch.as_tensor(np.argsort(-scores, kind="stable")) for scores in self.scores]


def magnitude(weights: Mapping[str, Tensor], card: Card) -> Importance:
    """Score by the mean size of the weights, without any training."""
    found = [[piece.apart(weights[piece.name]).abs() for piece in group.weights] for group in groups(card)]
    return Importance(tuple(_mean([part.sum(1) for part in parts], _counts(parts)) for parts in found))


class Watched(nn.Module):
    """A model whose heads and channels are scored while it is trained.

    It is trained as the model itself is. The scores are buffers, so that checkpoints keep them.
    """

    def __init__(self, model: TaskModel) -> None:
        super().__init__()
        self.model = model
        self._groups = groups(model.transformer.card)
        parameters = dict(model.named_parameters())
        for number, group in enumerate(self._groups):
            self.register_buffer(f"scores_{number}", torch.zeros(group.members, dtype=torch.float64))
            for piece in group.weights:
                self._watch(number, piece, parameters[piece.name])

    def _watch(self, number: int, piece: Piece, parameter: nn.Parameter) -> None:
        def note(gradient: Tensor) -> None:
            moved = piece.apart(gradient * parameter.detach()).sum(1)
            self.get_buffer(f"scores_{number}").sub_(moved)  # less loss the more the product is below zero

        parameter.register_hook(note)  # type: ignore[no-untyped-call]

    def forward(self, *inputs: Any) -> Tensor:
        """Return the scores of the model's head."""
        scores: Tensor = self.model(*inputs)
        return scores

    def importance(self) -> Importance:
        """Give what was found so far."""
        parameters = dict(self.model.named_parameters())
        found = []
        for number, group in enumerate(self._groups):
            counts = _counts([piece.apart(parameters[piece.name]) for piece in group.weights])
            found.append(_mean([self.get_buffer(f"scores_{number}")], counts))
        return Importance(tuple(found))


def _counts(parts: list[Tensor]) -> int:
    return sum(part.shape[1] for part in parts)


def _mean(sums: list[Tensor], count: int) -> Floats:
    total: Floats = torch.stack([part.detach().to(torch.float64) for part in sums]).sum(0).cpu().numpy() / count
    return total


def uniform(card: Card) -> Importance:
    """Score all alike, so that everything stays where it stands: what the other scores are compared with."""
    return Importance(tuple(np.zeros(group.members) for group in groups(card)))
