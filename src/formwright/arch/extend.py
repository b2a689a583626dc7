"""Carry a found design over to other sizes: deeper by repeating its blocks, wider or narrower by its heads.

AutoBERT-Zero (Gao et al., 2022, section 4.1) searches at one size and scales what it found: two neighbouring layers are
a block, and a larger model has the same block again after each block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from formwright.arch.card import Card
from formwright.arch.layers import Block, Layer, Stack
from formwright.arch.ops import (
    Attention,
    CrossAttention,
    DynamicConvolution,
    LightweightConvolution,
    Mixer,
    OpGraph,
    RelativeAttention,
    Transform,
)
from formwright.core.errors import IllegalInput

_Headed = Attention | CrossAttention | DynamicConvolution | LightweightConvolution | OpGraph | RelativeAttention
H = TypeVar("H", bound=_Headed)


def extended(card: Card, times: int, block: int = 2) -> Card:
    """Return the design with every `block` of neighbouring layers there `times` times, one after the other.

    Raise `IllegalInput` where the layers of a stack are not whole blocks.
    """
    if times < 1 or block < 1:
        raise IllegalInput(
            f"a design has each block at least once and blocks of at least one layer, not {times=} {block=}"
        )
    return _each_stack(card, lambda stack: replace(stack, layers=_repeated(stack.layers, times, block)))


def widened(card: Card, width: int) -> Card:
    """Return the design with hidden vectors of another width: as many more heads and channels, each as wide as before.

    Raise `IllegalInput` where layers are of unequal widths, are cells, or would have a part of a head.
    """
    return _each_stack(card, lambda stack: _widened_stack(stack, width))


def _each_stack(card: Card, change: Callable[[Stack], Stack]) -> Card:
    encoder, decoder = (None if stack is None else change(stack) for stack in (card.encoder, card.decoder))
    return replace(card, encoder=encoder, decoder=decoder)


def _repeated(layers: tuple[Layer, ...], times: int, block: int) -> tuple[Layer, ...]:
    if len(layers) % block:
        raise IllegalInput(f"{len(layers)} layers are no whole number of blocks of {block}; choose another block")
    blocks = [layers[start : start + block] for start in range(0, len(layers), block)]
    return tuple(layer for one in blocks for layer in one * times)


def _widened_stack(stack: Stack, width: int) -> Stack:
    before = stack.embedding.width
    layers = tuple(_widened_layer(layer, before, width) for layer in stack.layers)
    return replace(stack, embedding=replace(stack.embedding, width=width), layers=layers)


def _widened_layer(layer: Layer, before: int, width: int) -> Layer:
    if not isinstance(layer, Block) or layer.width != before:
        raise IllegalInput(f"only blocks that are all {before} wide can be widened together, and one layer is none")
    return replace(
        layer,
        width=width,
        mixer=_widened_mixer(layer.mixer, before, width),
        feed_forward=tuple(_share(hidden, before, width, "feed-forward width") for hidden in layer.feed_forward),
        cross=None if layer.cross is None else _more_heads(layer.cross, before, width),
    )


def _widened_mixer(mixer: Mixer, before: int, width: int) -> Mixer:
    if isinstance(mixer, Transform) and mixer.relative is not None:
        return replace(mixer, relative=_more_heads(mixer.relative, before, width))
    return _more_heads(mixer, before, width) if isinstance(mixer, _Headed) else mixer


def _more_heads(operation: H, before: int, width: int) -> H:
    return replace(operation, heads=_share(operation.heads, before, width, "number of heads"))


def _share(size: int, before: int, width: int, what: str) -> int:
    if size * width % before or not size * width // before:
        raise IllegalInput(f"a {what} of {size} at width {before} becomes no whole number at width {width}")
    return size * width // before
