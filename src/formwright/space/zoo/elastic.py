"""The elastic space: every smaller version of a given encoder, layer by layer.

This is the space of a super-network whose attention and feed-forward widths are slices of one model's weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, Identity
from formwright.core.codec import Natural, Positive, read, write
from formwright.core.errors import Fault, IllegalDesign, IllegalInput
from formwright.space import Choice, Fields, Record, Repeat, Space
from formwright.space.zoo.bert import BASE

Widths = Sequence[int] | Sequence[Sequence[int]]
Lists = tuple[tuple[Natural, ...], ...]  # the widths of each layer, from the input up


def elastic(
    card: Card,
    heads: Widths,
    feed_forward: Widths,
    depths: Sequence[int] = (),
    name: str = "elastic",
    hidden: Sequence[int] = (),
) -> Space:
    """Make the space of an encoder's sub-networks.

    `heads` and `feed_forward` list the widths to choose from, once for all layers or one list per layer; 0 leaves that
    part of the layer out. `depths` lists how many of the leading layers may be kept, and needs one list for all
    layers. `hidden` lists the hidden sizes: the width between layers, the same in all of them; without any the encoder
    keeps its own. Heads stay as wide as they are, and narrow token tables too.
    """
    stack, blocks = _encoder(card)
    if depths and (_per_layer(heads) or _per_layer(feed_forward)):
        raise IllegalInput("free depths need one list of widths for all layers; give one list, or leave out depths")
    if any(not 1 <= depth <= len(blocks) for depth in depths):
        raise IllegalInput(f"depths must lie between 1 and the encoder's {len(blocks)} layers, not {list(depths)}")
    choices = zip(_lists(heads, blocks, "heads"), _lists(feed_forward, blocks, "feed_forward"), strict=True)
    layers = [Record.of(heads=Choice(tuple(many)), feed_forward=Choice(tuple(wide))) for many, wide in choices]
    uniform = all(layer == layers[0] for layer in layers)
    named = tuple((f"layer_{index}", layer) for index, layer in enumerate(layers))
    part = Repeat(layers[0], tuple(depths) or len(blocks)) if uniform else Record(named)
    sizes = {"hidden": Choice(_hidden(hidden, stack))} if hidden else {}

    def build(design: Fields) -> Card:
        chosen = design.layers.values() if isinstance(design.layers, Fields) else design.layers
        kept = tuple(_shrink(block, layer) for block, layer in zip(blocks, chosen, strict=False))
        smaller = replace(stack, layers=kept)
        return replace(card, encoder=_narrowed(smaller, design.hidden) if hidden else smaller)

    return Space(name, Record.of(**sizes, layers=part), build, "smaller versions of one encoder, layer by layer")


def _encoder(card: Card) -> tuple[Stack, tuple[Block, ...]]:
    stack = card.encoder
    if stack is None or card.decoder is not None:
        raise IllegalInput(f"an elastic space is made from an encoder; this is a {card.family} design")
    blocks = tuple(layer for layer in stack.layers if isinstance(layer, Block) and isinstance(layer.mixer, Attention))
    if len(blocks) < len(stack.layers) or any(len(block.feed_forward) != 1 for block in blocks):
        raise IllegalInput("an elastic space needs layers of self-attention and one feed-forward layer each")
    return stack, blocks


def _per_layer(widths: Widths) -> bool:
    return any(isinstance(item, Sequence) for item in widths)


def _lists(widths: Widths, blocks: Sequence[Block], what: str) -> list[Sequence[int]]:
    lists: list[Sequence[int]] = [item for item in widths if isinstance(item, Sequence)]
    if lists and len(lists) < len(widths):
        raise IllegalInput(f"{what} mixes lists and single widths; give one list for all layers, or one list per layer")
    if not lists:
        lists = [[item for item in widths if not isinstance(item, Sequence)]] * len(blocks)
    if len(lists) != len(blocks):
        raise IllegalInput(f"{what} has {len(lists)} lists of widths for {len(blocks)} layers")
    for index, (options, block) in enumerate(zip(lists, blocks, strict=True)):
        assert isinstance(block.mixer, Attention)
        most = block.mixer.heads if what == "heads" else block.feed_forward[0]
        if not options or any(type(option) is not int or not 0 <= option <= most for option in options):
            raise IllegalInput(
                f"{what} of layer {index} must be whole numbers between 0 and the encoder's {most}, not {list(options)}"
            )
    return lists


def _hidden(sizes: Sequence[int], stack: Stack) -> tuple[int, ...]:
    most = stack.embedding.width
    if any(layer.width != most for layer in stack.layers):
        raise IllegalInput("hidden sizes need an encoder whose layers are all as wide as its embedding")
    if any(type(size) is not int or not 1 <= size <= most for size in sizes):
        raise IllegalInput(f"hidden must be whole numbers between 1 and the encoder's {most}, not {list(sizes)}")
    return tuple(sizes)


def _narrowed(stack: Stack, width: int) -> Stack:
    layers = tuple(replace(layer, width=width) for layer in stack.layers)
    return replace(stack, embedding=replace(stack.embedding, width=width), layers=layers)


def _shrink(block: Block, layer: Fields) -> Block:
    assert isinstance(block.mixer, Attention)
    mixer = replace(block.mixer, heads=layer.heads) if layer.heads else Identity()
    return replace(block, mixer=mixer, feed_forward=(layer.feed_forward,) if layer.feed_forward else ())


BERT_BASE = elastic(BASE, heads=(4, 6, 8, 10, 12), feed_forward=(768, 1344, 1920, 2496, 3072))


@dataclass(frozen=True)
class ElasticChoices:
    """List, for every layer of an encoder, the heads and the feed-forward widths it may have, and the hidden sizes.

    0 leaves a part of a layer out. Without hidden sizes the encoder keeps its own.
    """

    card: Card
    heads: Lists
    feed_forward: Lists
    hidden: tuple[Positive, ...] = ()

    def __post_init__(self) -> None:
        lists = {"heads": self.heads, "feed_forward": self.feed_forward}
        faults = [Fault(name, "needs a width for every layer") for name, lists in lists.items() if not all(lists)]
        if faults:
            raise IllegalDesign(faults, what="elastic space")

    @property
    def space(self) -> Space:
        return elastic(self.card, self.heads, self.feed_forward, hidden=self.hidden, name="elastic")

    @property
    def largest(self) -> Card:
        return self._cut(max)

    @property
    def smallest(self) -> Card:
        return self._cut(min)

    @property
    def count(self) -> int:
        return prod(len(choices) for choices in (*self.heads, *self.feed_forward, self.hidden or (0,)))

    def design(self, widths: Sequence[tuple[int, int]], hidden: int | None = None) -> Any:
        """Return the design of a sub-network by the heads and the feed-forward width of each layer.

        Its hidden size is the largest, unless another is given.
        """
        layers = [{"heads": heads, "feed_forward": channels} for heads, channels in widths]
        alike = len(set(self.heads)) == len(set(self.feed_forward)) == 1
        data: dict[str, Any] = {
            "layers": layers if alike else {f"layer_{index}": layer for index, layer in enumerate(layers)}
        }
        return self.space.from_json(data | ({"hidden": hidden or max(self.hidden)} if self.hidden else {}))

    def _cut(self, pick: Any) -> Card:
        heads, channels = ([[pick(one)] for one in lists] for lists in (self.heads, self.feed_forward))
        hidden = [pick(self.hidden)] if self.hidden else []
        space = elastic(self.card, heads, channels, hidden=hidden)
        return space.card(next(iter(space.enumerate())))

    def to_json(self) -> dict[str, Any]:
        return write(self)  # type: ignore[no-any-return]

    @classmethod
    def from_json(cls, data: Any) -> "ElasticChoices":
        """Read what `to_json` wrote; raise `IllegalDesign` with every fault and where it is."""
        return read(cls, data, "elastic space")
