"""The parts of an encoder that can be left out one by one: attention heads and feed-forward channels.

They are described once, by the tensors that belong to them and by the axis along which these are cut, so that scoring
and reordering need not know how a layer is built.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput


@dataclass(frozen=True)
class Piece:
    """One tensor of a group: along `axis` it holds, for each member, `size` numbers side by side."""

    name: str
    axis: int
    size: int

    def apart(self, tensor: Tensor) -> Tensor:
        """Give the tensor with its members first: (members, all the rest)."""
        members = tensor.shape[self.axis] // self.size
        return tensor.movedim(self.axis, 0).reshape(members, -1)

    def taken(self, tensor: Tensor, order: Tensor) -> Tensor:
        """Put the members into another order."""
        places = (order[:, None] * self.size + torch.arange(self.size)).flatten()
        return tensor.index_select(self.axis, places.to(tensor.device))


@dataclass(frozen=True)
class Group:
    """The members of one layer that are of one kind; `weights` are scored, `biases` only follow."""

    layer: int  # -1 for what runs through all layers
    kind: str  # heads, channels, hidden or pooled
    members: int
    weights: tuple[Piece, ...]
    biases: tuple[Piece, ...]


def groups(card: Card) -> list[Group]:
    """List what can be left out of an encoder of attention and feed-forward layers, from the first layer up."""
    if card.encoder is None or card.decoder is not None:
        raise IllegalInput(f"heads and channels are scored in encoders; this is a {card.family} design")
    return [group for index, layer in enumerate(card.encoder.layers) for group in _of_layer(index, layer)]


def _of_layer(index: int, layer: object) -> Iterator[Group]:
    if not isinstance(layer, Block):
        raise IllegalInput(f"layer {index} is a cell; heads and channels are scored in ordinary layers")
    prefix = f"transformer.encoder.layers.{index}"
    if isinstance(layer.mixer, Attention):
        yield _heads(index, layer.mixer, f"{prefix}.mixer")
    if len(layer.feed_forward) == 1:
        yield _channels(index, layer.feed_forward[0], f"{prefix}.feed_forward.maps")


def _heads(index: int, mixer: Attention, prefix: str) -> Group:
    packed, output = f"{prefix}.query_key_value", f"{prefix}.output"
    # the rows of a head's query, key and value stand side by side
    weights = (Piece(f"{packed}.weight", 0, 3 * mixer.head_width), Piece(f"{output}.weight", 1, mixer.head_width))
    biases = (Piece(f"{packed}.bias", 0, 3 * mixer.head_width),) if mixer.bias else ()
    return Group(index, "heads", mixer.heads, weights, biases)


def _channels(index: int, width: int, prefix: str) -> Group:
    weights = (Piece(f"{prefix}.0.weight", 0, 1), Piece(f"{prefix}.1.weight", 1, 1))
    return Group(index, "channels", width, weights, (Piece(f"{prefix}.0.bias", 0, 1),))
