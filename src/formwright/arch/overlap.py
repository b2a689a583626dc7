"""How much of a design another one already holds, counted from the input (FlexiBERT, section 3.3.3)."""

from formwright.arch.card import Card
from formwright.arch.layers import Layer


def biased_overlap(query: Card, neighbour: Card) -> int:
    """Count the leading layers that two designs share exactly; counting stops at the first that differs.

    Layers of an encoder come before those of a decoder, which count only when the whole encoder is shared.
    """
    shared = 0
    for own, other in zip(_stacks(query), _stacks(neighbour), strict=False):
        for mine, theirs in zip(own, other, strict=False):
            if mine != theirs:
                return shared
            shared += 1
        if len(own) != len(other):
            return shared
    return shared


def overlap_fraction(query: Card, neighbour: Card) -> float:
    """Give the biased overlap as a share of the query's layers."""
    return biased_overlap(query, neighbour) / sum(len(layers) for layers in _stacks(query))


def _stacks(card: Card) -> list[tuple[Layer, ...]]:
    return [stack.layers if stack is not None else () for stack in (card.encoder, card.decoder)]
