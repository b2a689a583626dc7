"""Resize a design: deeper by repeating its blocks of layers, wider or narrower by its number of heads.

AutoBERT-Zero (Gao et al., 2022, section 4.1) searches at one size and scales what it found: two neighbouring layers are
a block, and a larger model repeats every block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from formwright.arch.card import Card
from formwright.arch.layers import Block, Layer, Stack
from formwright.core.errors import IllegalInput


def extended(card: Card, times: int, block: int = 2) -> Card:
    """Repeat every `block` of neighbouring layers `times` times.

    Raise `IllegalInput` if the layers of a stack cannot be divided into blocks.
    """
    if times < 1 or block < 1:
        raise IllegalInput(f"times and block must be at least 1, not {times=} {block=}")

    def repeated(stack: Stack) -> Stack:
        layers, depth = stack.layers, len(stack.layers)
        if depth % block:
            raise IllegalInput(f"{depth} layers cannot be divided into blocks of {block}; choose another block size")
        blocks = [layers[start : start + block] for start in range(0, depth, block)]
        return replace(stack, layers=tuple(layer for one in blocks for layer in one * times))

    return _each_stack(card, repeated)


def widened(card: Card, width: int) -> Card:
    """Change the hidden size and scale the number of heads and channels with it; heads keep their width.

    Raise `IllegalInput` if layers have unequal widths, are cells, or would need a fraction of a head.
    """

    def resized(stack: Stack) -> Stack:
        layers = tuple(_widened_layer(layer, stack.embedding.width, width) for layer in stack.layers)
        out = width if stack.out is not None else None
        return replace(stack, embedding=replace(stack.embedding, width=width), layers=layers, out=out)

    return _each_stack(card, resized)


def _each_stack(card: Card, change: Callable[[Stack], Stack]) -> Card:
    encoder, decoder = (None if stack is None else change(stack) for stack in (card.encoder, card.decoder))
    return replace(card, encoder=encoder, decoder=decoder)


def _widened_layer(layer: Layer, before: int, width: int) -> Layer:
    if not isinstance(layer, Block) or layer.width != before:
        raise IllegalInput(
            f"only blocks that are all {before} wide can be widened; one layer is a cell or has another width"
        )

    def scaled(size: int, what: str) -> int:
        if size * width % before or not size * width // before:
            raise IllegalInput(f"a {what} of {size} at width {before} is not a whole number at width {width}")
        return size * width // before

    def more(heads: int) -> int:
        return scaled(heads, "number of heads")

    hidden = tuple(scaled(size, "feed-forward width") for size in layer.feed_forward)
    cross = layer.cross.with_heads(more) if layer.cross is not None else None
    return replace(layer, width=width, mixer=layer.mixer.with_heads(more), feed_forward=hidden, cross=cross)
