"""One name for all formulas that compute the same, by certain algebra and whatever their inputs are called."""

from __future__ import annotations

from formwright.arch.card import Card
from formwright.arch.graph import graph_digest
from formwright.arch.layers import Block
from formwright.arch.ops import OpGraph
from formwright.core.remember import remember


@remember
def plain_digest(card: Card) -> str:
    """Give the digest of the graph of a card with formulas; without formulas it is the card's own.

    Formulas are simplified in that graph, and Q, K, V and P are four linear maps of one input, without a name: to trade
    them is no new design. Where designs share weights, they do begin with other ones.
    """
    return graph_digest(card) if has_formulas(card) else card.digest


def has_formulas(card: Card) -> bool:
    """Tell whether the mixer of any block is a formula."""
    blocks = (layer for stack in card.stacks for layer in stack.layers if isinstance(layer, Block))
    return any(isinstance(block.mixer, OpGraph) for block in blocks)
