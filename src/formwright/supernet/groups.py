"""Groups of weights that can be removed together: attention heads, feed-forward channels and hidden units.

Each group lists its tensors and the axis along which they are cut, so that scoring and reordering need not know how a
layer is built. The hidden size is an axis of almost every tensor; one that is not described here is rejected, because
the model would compute another function if it had to follow and did not.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.layers import Block, Embedding, FrameEmbedding, PatchEmbedding, Stack, TokenEmbedding
from formwright.arch.ops import Attention, Identity
from formwright.core.errors import IllegalInput
from formwright.nn.build import skeleton
from formwright.nn.task_model import HeadSpec


@dataclass(frozen=True)
class Piece:
    """One tensor of a group: along `axis` it holds `size` consecutive numbers for each member."""

    name: str
    axis: int
    size: int

    def apart(self, tensor: Tensor) -> Tensor:
        """Return the tensor with its members first: (members, all the rest)."""
        members = tensor.shape[self.axis] // self.size
        return tensor.movedim(self.axis, 0).reshape(members, -1)

    def taken(self, tensor: Tensor, order: Tensor) -> Tensor:
        places = (order[:, None] * self.size + torch.arange(self.size)).flatten()
        return tensor.index_select(self.axis, places.to(tensor.device))


@dataclass(frozen=True)
class Group:
    """The members of one layer that are of one kind; `weights` are scored, `biases` are only cut."""

    layer: int  # -1 for the hidden size
    kind: str  # heads, channels, hidden or pooled
    members: int
    weights: tuple[Piece, ...]
    biases: tuple[Piece, ...]


def groups(card: Card) -> list[Group]:
    """List the removable groups of an encoder of attention and feed-forward layers, from the first layer up."""
    if card.encoder is None or card.decoder is not None:
        raise IllegalInput(f"heads and channels are scored in encoders; this is a {card.family} design")
    return [group for index, layer in enumerate(card.encoder.layers) for group in _of_layer(index, layer)]


def _of_layer(index: int, layer: object) -> Iterator[Group]:
    if not isinstance(layer, Block):
        raise IllegalInput(f"layer {index} is a cell; heads and channels are scored in ordinary layers")
    prefix = f"transformer.encoder.layers.{index}"
    if isinstance(mixer := layer.mixer, Attention):
        packed, size = f"{prefix}.mixer.query_key_value", mixer.head_width
        # query, key and value rows of a head are adjacent
        weights = (Piece(f"{packed}.weight", 0, 3 * size), Piece(f"{prefix}.mixer.output.weight", 1, size))
        biases = (Piece(f"{packed}.bias", 0, 3 * size),) if mixer.bias else ()
        yield Group(index, "heads", mixer.heads, weights, biases)
    if len(layer.feed_forward) == 1:
        maps = f"{prefix}.feed_forward.maps"
        weights = (Piece(f"{maps}.0.weight", 0, 1), Piece(f"{maps}.1.weight", 1, 1))
        yield Group(index, "channels", layer.feed_forward[0], weights, (Piece(f"{maps}.0.bias", 0, 1),))


Axes = dict[str, tuple[int, ...]]  # by the name of a tensor: the axes that are as long as the hidden size


def hidden_group(card: Card, head: HeadSpec | None) -> Group:
    """Describe the hidden size as a group: matrices and tables are scored, norms and biases are only cut.

    `head` is the head that the model carries; without one, tensors have the names of a bare transformer.
    """
    stack = _checked(card)
    axes, width = _axes(card, stack, head), stack.output_width
    weights: list[Piece] = []
    biases: list[Piece] = []
    for name, tensor in skeleton(card, head=head).named_parameters():
        if name not in axes:
            raise IllegalInput(f"the hidden size cannot change: nothing says whether the tensor {name} follows it")
        for axis in axes[name]:
            assert tensor.shape[axis] == width, f"axis {axis} of {name} is not the hidden size"
            (weights if tensor.dim() > 1 else biases).append(Piece(name, axis, 1))
    return Group(-1, "hidden", width, tuple(weights), tuple(biases))


def pooled_group(card: Card, head: HeadSpec | None) -> Group | None:
    """Describe the outputs of the pooler, whose number is the hidden size but whose order is independent.

    None where no head reads them.
    """
    if not card.pooler or head is None or head.task != "sequence-classification":
        return None
    pooler = "transformer.pooler"
    weights = (Piece(f"{pooler}.weight", 0, 1), Piece("head.output.weight", 1, 1))
    return Group(-1, "pooled", card.output_width, weights, (Piece(f"{pooler}.bias", 0, 1),))


def stream_groups(card: Card, head: HeadSpec | None) -> list[Group]:
    """List what a smaller hidden size leaves out: the numbers between layers, and as many outputs of the pooler."""
    return [group for group in (hidden_group(card, head), pooled_group(card, head)) if group is not None]


def _checked(card: Card) -> Stack:
    stack = card.encoder
    if stack is None or card.decoder is not None:
        raise IllegalInput(f"the hidden size is scored in encoders; this is a {card.family} design")
    if any(layer.width != stack.embedding.width for layer in stack.layers):
        raise IllegalInput("the hidden size is scored where all layers are as wide as the embedding")
    for index, layer in enumerate(stack.layers):
        # other mixers may have no weights to cut
        if not isinstance(layer, Block) or not isinstance(layer.mixer, Attention | Identity):
            raise IllegalInput(
                f"layer {index} is not a self-attention layer; the hidden size is scored where all layers are"
            )
    if stack.embedding.positions == "sinusoidal" and not _narrow(stack.embedding):
        raise IllegalInput("sinusoidal positions stand in a fixed order, so the hidden size cannot be put into another")
    return stack


def _narrow(embedding: Embedding) -> bool:
    """Return whether the tables are narrow, so that a map stands between them and the layers."""
    return isinstance(embedding, TokenEmbedding) and embedding.factorised is not None


def _axes(card: Card, stack: Stack, head: HeadSpec | None) -> Axes:
    body = _under("encoder.embedding", _embedding(stack.embedding)) | _writes("encoder.final_norm")
    for index, layer in enumerate(stack.layers):
        assert isinstance(layer, Block)
        body |= _under(f"encoder.layers.{index}", _layer(layer))
    body |= _reads("pooler") | _reads("classes")
    return body if head is None else _under("transformer", body) | _under("head", _head(card, stack, head))


def _embedding(embedding: Embedding) -> Axes:
    match embedding:
        case TokenEmbedding():
            own: tuple[int, ...] = () if _narrow(embedding) else (1,)
            tables = {"tokens.weight": own, "positions.table": own, "types.weight": own}
            return tables | (_apart("norm") if _narrow(embedding) else _writes("norm")) | _writes("widen")
        case PatchEmbedding():
            return _writes("pixels") | {"class_token": (1,), "positions.table": (1,)}
        case FrameEmbedding():
            return _apart("norm") | _writes("features") | {"positions.table": (1,)}


def _layer(block: Block) -> Axes:
    attention = _reads("mixer.query_key_value") | _writes("mixer.output") | _writes("mixer_norm")
    in_heads: Axes = {f"mixer.{name}": () for name in ("bilinear", "relative.keys", "relative.values")}
    first, *between, last = (f"feed_forward.maps.{index}" for index in range(max(2, len(block.feed_forward) + 1)))
    inner: Axes = {name: axes for one in between for name, axes in _apart(one).items()}
    return attention | in_heads | _reads(first) | inner | _writes(last) | _writes("feed_forward_norm")


def _head(card: Card, stack: Stack, head: HeadSpec) -> Axes:
    if head.task == "masked-lm":
        if _narrow(stack.embedding):
            return _reads("dense") | _apart("norm") | {"bias": ()}
        # what leaves the dense layer meets the token table, whose columns follow
        return {"dense.weight": (0, 1), "dense.bias": (0,), "bias": ()} | _writes("norm")
    pooled = card.pooler and head.task == "sequence-classification"
    return _apart("output") if pooled else _reads("output")


def _reads(name: str) -> Axes:
    return {f"{name}.weight": (1,), f"{name}.bias": ()}


def _writes(name: str) -> Axes:
    return {f"{name}.weight": (0,), f"{name}.bias": (0,)}


def _apart(name: str) -> Axes:
    return {f"{name}.weight": (), f"{name}.bias": ()}


def _under(prefix: str, axes: Axes) -> Axes:
    return {f"{prefix}.{name}": places for name, places in axes.items()}
