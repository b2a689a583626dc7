"""Put the parts of a model in the order of their importance, so that the leading ones are the ones worth keeping."""

from collections.abc import Mapping

from torch import Tensor

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.nn.heads import HeadSpec
from formwright.supernet.hidden import stream_groups
from formwright.supernet.importance import Importance, falling
from formwright.supernet.parts import Group, groups


def reordered(
    weights: Mapping[str, Tensor], card: Card, importance: Importance, head: HeadSpec | None = None
) -> dict[str, Tensor]:
    """Give the weights of the same function with the most important parts first.

    Whatever reads a part follows it: the output map of attention, the second map of the feed-forward layer, and all
    that the hidden size runs through where that was scored; then `head` must say which head the weights carry. Sums
    are taken in another order, so that results differ in the last digits.
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
