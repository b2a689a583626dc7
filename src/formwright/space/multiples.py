"""The space of a design's versions of uniform shares: of the heads and channels of all layers, and of the layers."""

from collections.abc import Sequence
from dataclasses import replace

from formwright.arch.card import Card
from formwright.arch.layers import Stack
from formwright.core.errors import IllegalInput
from formwright.space.combinators import Choice, Record
from formwright.space.design import Fields
from formwright.space.elastic_parts import resized, scored_parts, stacks_of, with_stacks
from formwright.space.space import Space

WIDTHS, DEPTHS = (0.25, 0.5, 0.75, 1.0), (0.5, 0.75, 1.0)
_ABOUT = "uniform shares of heads, channels and layers"


def multiples(
    card: Card,
    widths: Sequence[float] = WIDTHS,
    depths: Sequence[float] = DEPTHS,
    name: str = "multiples",
    about: str = _ABOUT,
) -> Space:
    """Make the space of a design's versions of uniform shares.

    A multiplier of `widths` is the share of heads and channels that every layer keeps, one of `depths` the share of the
    layers of each stack, which are spread evenly: of n layers the i-th of k is layer floor(i n / k). Every layer keeps
    a head and a channel at least, and every stack a layer.
    """
    if not widths or not depths or any(not 0 < share <= 1 for share in (*widths, *depths)):
        raise IllegalInput(f"multipliers lie above 0 and are at most 1, not {list(widths)} and {list(depths)}")

    def build(design: Fields) -> Card:
        return with_stacks(card, {key: _cut(one, design.width, design.depth) for key, one in stacks_of(card).items()})

    root = Record.of(width=Choice(tuple(widths)), depth=Choice(tuple(depths)))
    return Space(name, root, build, about)


def _cut(stack: Stack, width: float, depth: float) -> Stack:
    number = len(stack.layers)
    kept = max(1, round(depth * number))
    layers = [stack.layers[place * number // kept] for place in range(kept)]
    sizes = [{part.name: max(1, round(width * part.most)) for part in scored_parts(layer)} for layer in layers]
    return replace(stack, layers=tuple(resized(layer, own) for layer, own in zip(layers, sizes, strict=True)))
