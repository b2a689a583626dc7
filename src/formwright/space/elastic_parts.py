"""What may be smaller in a layer, and designs with smaller layers.

What may be smaller in an operation follows from its declaration: the fields in `ELASTIC`, and the axes that they count.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from formwright.arch.card import Card
from formwright.arch.layers import Block, Layer, Stack
from formwright.arch.ops import Identity, Operation
from formwright.arch.tensors import Cut, Factor
from formwright.core.errors import IllegalInput

LayerSizes = tuple[tuple[int, ...], ...]  # of the scored parts of each layer, the encoder's layers first


class ElasticPart(NamedTuple):
    """A size of a layer that may be smaller: its name in designs, the option that lists its choices, and its ends.

    `part` and `group` name the declared tensors that it cuts, `cut` says how, and `field` is the operation's field of
    this size. A `least` of 0 means that the part may be left out. Sizes of a `rounded` part count single channels, of
    which processors are fastest at certain multiples.
    """

    name: str
    option: str
    part: str
    group: str
    most: int
    least: int = 0
    field: str = ""
    cut: Cut = "leading"
    rounded: bool = False


OPTIONS = ("heads", "kernels", "cross", "feed_forward")  # sizes with an option of their own
# Those of operations: by part and field the name in designs, the option, and the least size. Other fields are called by
# both ("mixer_experts"), so that none can take the name of another size of the layer.
_NAMED = {
    ("mixer", "heads"): ("heads", "heads", 0),
    ("mixer", "kernel"): ("kernel", "kernels", 1),
    ("cross", "heads"): ("cross", "cross", 0),
}


@lru_cache(maxsize=1 << 12)
def elastic_parts(layer: Layer) -> tuple[ElasticPart, ...]:
    """List what can be smaller in a layer; a cell has nothing."""
    if not isinstance(layer, Block):
        return ()
    found = [one for part, operation in layer.operations for one in _sizes(part, operation, layer.width)]
    several = len(layer.feed_forward) > 1
    for index, width in enumerate(layer.feed_forward):
        name = f"feed_forward_{index + 1}" if several else "feed_forward"
        group, least = f"channels {index}", int(several)
        found.append(ElasticPart(name, "feed_forward", "feed_forward", group, width, least, rounded=True))
    return tuple(found)


def _sizes(part: str, operation: Operation, width: int) -> Iterator[ElasticPart]:
    """List the sizes of an operation that may be smaller; of `whole` things no smaller number has a meaning."""
    if not operation.ELASTIC:
        return
    stream, memory = Factor(width), Factor(1)  # how wide they are does not matter here
    axes = [axis for tensor in operation.tensors(stream, stream, memory) for axis in tensor.axes]
    groups = {factor.group: factor for axis in axes for factor in axis}
    for field, group in operation.ELASTIC.items():
        size, factor = getattr(operation, field), groups.get(group)
        if factor is None or factor.size != size:
            counted = "no tensor has" if factor is None else f"counts {factor.size}"
            raise IllegalInput(
                f"the operation {operation.TYPE} declares in ELASTIC that {field} ({size}) is the size of the group "
                f"{group!r}, which {counted}"
            )
        if factor.cut != "whole":
            name, option, least = _NAMED.get((part, field), (f"{part}_{field}", f"{part}_{field}", 1))
            # members that are several numbers, such as heads, stand on an axis next to what each of them has
            single = all(len(axis) == 1 for axis in axes if any(one.group == group for one in axis))
            rounded = single and factor.cut == "leading"
            yield ElasticPart(name, option, part, group, size, least, field, factor.cut, rounded)


def scored_parts(layer: Layer) -> tuple[ElasticPart, ...]:
    """List what can be smaller in a layer by leaving members out: heads and channels, and not the ends of kernels."""
    return tuple(one for one in elastic_parts(layer) if one.cut == "leading")


def layers_of(card: Card) -> tuple[Layer, ...]:
    """Give the layers of a design, the encoder's first."""
    return tuple(layer for stack in card.stacks for layer in stack.layers)


def resized(layer: Layer, sizes: Mapping[str, int]) -> Layer:
    """Cut a layer to sizes by the names of its parts; parts that are not named stay as they are."""
    if not isinstance(layer, Block):
        return layer
    parts = elastic_parts(layer)
    changes: dict[str, Any] = {}
    for part, operation in layer.operations:
        fields = {one.field: sizes[one.name] for one in parts if one.part == part and one.name in sizes}
        if fields:
            left_out = Identity() if part == "mixer" else None
            changes[part] = replace(operation, **fields) if all(fields.values()) else left_out
    widths = [sizes.get(one.name, one.most) for one in parts if one.part == "feed_forward"]
    return replace(layer, **changes, feed_forward=tuple(filter(None, widths)))


def stacks_of(card: Card) -> dict[str, Stack]:
    """Give the stacks of a design by their names, the encoder first."""
    return {key: one for key, one in (("encoder", card.encoder), ("decoder", card.decoder)) if one is not None}


def with_stacks(card: Card, stacks: Mapping[str, Stack]) -> Card:
    """Give a design with other stacks."""
    return replace(card, encoder=stacks.get("encoder"), decoder=stacks.get("decoder"))


def shares_hidden(card: Card) -> bool:
    """Tell whether encoder and decoder have one hidden size: the width of the token table that they share."""
    return card.share_embedding and all(table.factorised is None for table in card.token_tables)


def with_layers(stack: Stack, layers: tuple[Layer, ...], hidden: int | None = None) -> Stack:
    """Give a stack with other layers, and of another hidden size if one is given."""
    embedding = stack.embedding
    if hidden is not None:
        embedding, layers = replace(embedding, width=hidden), tuple(replace(layer, width=hidden) for layer in layers)
    if embedding.positions == "relative" and not any(
        one.relative_axes for layer in layers for _, one in layer.operations
    ):
        embedding = replace(embedding, positions="none")  # the layers that had the tables are left out
    return replace(stack, embedding=embedding, layers=layers)
