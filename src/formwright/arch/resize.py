"""Resize a design: deeper by repeating its blocks of layers, wider or narrower by its number of heads.

AutoBERT-Zero (Gao et al., 2022, section 4.1) searches at one size and scales what it found: two neighbouring layers are
a block, and a larger model repeats every block.
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
    """Repeat every `block` of neighbouring layers `times` times.

    Raise `IllegalInput` if the layers of a stack cannot be divided into blocks.
    """
    if times < 1 or block < 1:
        raise IllegalInput(f"times and block must be at least 1, not {times=} {block=}")
    return _each_stack(card, lambda stack: replace(stack, layers=_repeated(stack.layers, times, block)))


def widened(card: Card, width: int) -> Card:
    """Change the hidden size and scale the number of heads and channels with it; heads keep their width.

    Raise `IllegalInput` if layers have unequal widths, are cells, or would need a fraction of a head.
    """
    return _each_stack(card, lambda stack: _widened_stack(stack, width))


def _each_stack(card: Card, change: Callable[[Stack], Stack]) -> Card:
    encoder, decoder = (None if stack is None else change(stack) for stack in (card.encoder, card.decoder))
    return replace(card, encoder=encoder, decoder=decoder)


def _repeated(layers: tuple[Layer, ...], times: int, block: int) -> tuple[Layer, ...]:
    if len(layers) % block:
        raise IllegalInput(f"{len(layers)} layers cannot be divided into blocks of {block}; choose another block size")
    blocks = [layers[start : start + block] for start in range(0, len(layers), block)]
    return tuple(layer for one in blocks for layer in one * times)


def _widened_stack(stack: Stack, width: int) -> Stack:
    before = stack.embedding.width
    layers = tuple(_widened_layer(layer, before, width) for layer in stack.layers)
    return replace(stack, embedding=replace(stack.embedding, width=width), layers=layers)


def _widened_layer(layer: Layer, before: int, width: int) -> Layer:
    if not isinstance(layer, Block) or layer.width != before:
        raise IllegalInput(
            f"only blocks that are all {before} wide can be widened; one layer is a cell or has another width"
        )
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
        raise IllegalInput(f"a {what} of {size} at width {before} is not a whole number at width {width}")
    return size * width // before
