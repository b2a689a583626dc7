"""One scale for all widths of a design, so that boxes and bars can be compared by eye."""

from collections.abc import Callable

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack


def widest(card: Card) -> int:
    """Give the greatest width that a box or a projection of the drawing must show."""
    return max(width for stack in card.stacks for width in _widths(stack))


def bar_scale(card: Card, inside: Callable[[int], float]) -> float:
    """Give the length of one unit of feed-forward width at which the fullest box just holds its bars.

    `inside` tells the length that is free in the box of a layer of some width.
    """
    blocks = {layer for stack in card.stacks for layer in stack.layers if isinstance(layer, Block)}
    return min((inside(block.width) / max(block.feed_forward) for block in blocks if block.feed_forward), default=0.0)


def _widths(stack: Stack) -> set[int]:
    layers = {width for layer in stack.layers for width in (layer.width, layer.output_width)}
    return layers | {stack.embedding.width, getattr(stack.embedding, "table_width", 0)}
