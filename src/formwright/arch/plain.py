"""Designs with their formulas simplified: one for all designs that compute the same by certain algebra."""

from __future__ import annotations

from dataclasses import replace

from formwright.arch.card import Card
from formwright.arch.layers import Block, Layer, Stack
from formwright.arch.ops import OpGraph
from formwright.arch.simplify import simplified
from formwright.core.remember import remember


@remember
def plain_digest(card: Card) -> str:
    """Give the digest of a card whose blocks have simplified formulas; without formulas it is the card's own."""
    if not has_formulas(card):
        return card.digest
    encoder, decoder = (None if stack is None else _plain(stack) for stack in (card.encoder, card.decoder))
    return replace(card, encoder=encoder, decoder=decoder).digest


def has_formulas(card: Card) -> bool:
    """Tell whether the mixer of any block is a formula."""
    blocks = (layer for stack in card.stacks for layer in stack.layers if isinstance(layer, Block))
    return any(isinstance(block.mixer, OpGraph) for block in blocks)


def _plain(stack: Stack) -> Stack:
    return replace(stack, layers=tuple(map(_plain_layer, stack.layers)))


def _plain_layer(layer: Layer) -> Layer:
    if not isinstance(layer, Block) or not isinstance(layer.mixer, OpGraph):
        return layer
    return replace(layer, mixer=replace(layer.mixer, term=simplified(layer.mixer.term)))
