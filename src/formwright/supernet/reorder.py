"""Put heads and channels in the order of their importance, so that the leading ones are the ones worth keeping."""

from collections.abc import Mapping

from torch import Tensor

from formwright.arch.card import Card
from formwright.supernet.importance import Importance
from formwright.supernet.parts import groups


def reordered(weights: Mapping[str, Tensor], card: Card, importance: Importance) -> dict[str, Tensor]:
    """Give the weights of the same function with the most important heads and channels first.

    Whatever reads a head or a channel follows it: the output map of attention and the second map of the feed-forward
    layer. Sums are taken in another order, so that results differ in the last digits.
    """
    result = dict(weights)
    for group, order in zip(groups(card), importance.orders(), strict=True):
        for piece in (*group.weights, *group.biases):
            result[piece.name] = piece.taken(weights[piece.name], order)
    return result
