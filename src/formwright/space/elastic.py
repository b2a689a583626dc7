"""The elastic space: every smaller version of a given design, layer by layer.

This is the space of a super-network whose heads, channels, kernels and hidden sizes are slices of one model's weights.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack
from formwright.core.codec import Natural, Positive, read, write
from formwright.core.errors import Fault, IllegalDesign, IllegalInput, nearest_hint
from formwright.space.combinators import Choice, Record
from formwright.space.design import Fields
from formwright.space.elastic_parts import (
    OPTIONS,
    ElasticPart,
    LayerSizes,
    elastic_parts,
    layers_of,
    resized,
    scored_parts,
    shares_hidden,
    stacks_of,
    with_layers,
    with_stacks,
)
from formwright.space.repeat import Repeat
from formwright.space.space import Space

Sizes = Sequence[int] | Sequence[Sequence[int]]  # to choose from: once for all layers, or one list per layer
ByStack = Sizes | Mapping[str, Sizes]  # for all stacks alike, or by "encoder" and "decoder"
Lists = tuple[tuple[Natural, ...], ...]  # the sizes of each layer, from the input up, the encoder's first


def elastic(
    card: Card,
    heads: ByStack | None = None,
    feed_forward: ByStack | None = None,
    depths: Sequence[int] | Mapping[str, Sequence[int]] = (),
    name: str = "elastic",
    hidden: Sequence[int] | Mapping[str, Sequence[int]] = (),
    *,
    cross: ByStack | None = None,
    kernels: ByStack | None = None,
    **further: ByStack,
) -> Space:
    """Make the space of a design's sub-networks.

    `heads`, `cross` (heads of attention to the encoder), `kernels` and `feed_forward` list the sizes to choose from,
    once for all layers that have the part, or one list per layer; 0 leaves that part of the layer out. Other elastic
    fields of operations are named by their part and their own name: `mixer_experts=(2, 4)`. What is not given stays as
    it is. `depths` lists how many layers may be kept, and needs one list for all layers. `hidden` lists the hidden
    sizes: the width between layers, the same in all of them. Heads stay as wide as they are, and narrow token tables
    too. A translator takes an option for both stacks alike, or by their names:
    `heads={"encoder": (2, 4), "decoder": (4,)}`. Its two hidden sizes are chosen apart, unless it has one token table.
    """
    named = {"heads": heads, "kernels": kernels, "cross": cross, "feed_forward": feed_forward}
    all_options = {**named, **further}
    given, stacks = {key: one for key, one in all_options.items() if one is not None}, stacks_of(card)
    layers = {key: _layers(key, stack, given, _of(depths, key) or ()) for key, stack in stacks.items()}
    known = sorted(set().union(*(_options(stack) for stack in stacks.values())))
    if lacking := [key for key in given if key not in known]:
        raise IllegalInput(
            f"{lacking[0]} cannot be chosen: no layer of this {card.family} design has such a part."
            f"{nearest_hint(lacking[0], [*known, 'depths', 'hidden'])}"
        )
    sizes = {key: _hidden(key, _of(hidden, key) or (), stack) for key, stack in stacks.items()}
    tied = shares_hidden(card)
    if tied and len(set(sizes.values())) > 1:
        raise IllegalInput("the encoder and the decoder share a token table: give both the same hidden sizes")

    def fields(key: str, *, whole: bool) -> Record:
        own = {"hidden": Choice(sizes[key])} if sizes[key] and (whole or not tied) else {}
        return Record.of(**own, layers=layers[key])

    if len(stacks) == 1:
        root = fields(*stacks, whole=True)
    else:
        shared = {"hidden": Choice(sizes["encoder"])} if tied and sizes["encoder"] else {}
        root = Record.of(**shared, **{key: fields(key, whole=False) for key in stacks})

    def build(design: Fields) -> Card:
        return with_stacks(card, {key: _cut(one, design, design.get(key, design)) for key, one in stacks.items()})

    return Space(name, root, build, "smaller versions of one design, layer by layer")


def _cut(stack: Stack, design: Fields, own: Fields) -> Stack:
    """Cut a stack; its hidden size is its own or that of the whole design."""
    chosen, layers = own.layers, stack.layers
    if isinstance(chosen, Fields):
        layers = tuple(resized(layer, chosen[f"layer_{index}"]) for index, layer in enumerate(layers))
    else:
        layers = tuple(resized(layer, sizes) for layer, sizes in zip(layers, chosen, strict=False))
    return with_layers(stack, layers, own.get("hidden", design.get("hidden")))


def _of(option: Any, key: str) -> Any:
    """Give what an option says of a stack; None where it is given for the other one only."""
    return option.get(key) if isinstance(option, Mapping) else option


def _options(stack: Stack) -> set[str]:
    return {one.option for layer in stack.layers for one in elastic_parts(layer)}


def _layers(key: str, stack: Stack, given: Mapping[str, ByStack], depths: Sequence[int]) -> Repeat | Record:
    number = len(stack.layers)
    known = {option: _of(one, key) for option, one in given.items() if option in _options(stack)}
    own = {option: sizes for option, sizes in known.items() if sizes is not None}
    if depths and any(_per_layer(sizes) for sizes in own.values()):
        raise IllegalInput("free depths need one list of widths for all layers; give one list, or leave out depths")
    if any(not 1 <= depth <= number for depth in depths):
        raise IllegalInput(f"depths must lie between 1 and the {key}'s {number} layers, not {list(depths)}")
    lists = {option: _lists(sizes, number, option) for option, sizes in own.items()}
    for option in (option for option, sizes in own.items() if _per_layer(sizes)):
        for index, layer in enumerate(stack.layers):
            if lists[option][index] and all(one.option != option for one in elastic_parts(layer)):
                raise IllegalInput(f"{option} cannot be chosen in layer {index} of the {key}: give it an empty list")
    layers = [
        Record.of(
            **{
                one.name: Choice(_checked(key, index, one, lists[one.option][index]))
                for one in elastic_parts(layer)
                if one.option in lists
            }
        )
        for index, layer in enumerate(stack.layers)
    ]
    if all(layer == layers[0] for layer in layers):
        return Repeat(layers[0], tuple(depths) or number)
    if depths:
        raise IllegalInput(f"free depths need layers of one kind, and those of the {key} differ; leave out depths")
    return Record(tuple((f"layer_{index}", layer) for index, layer in enumerate(layers)))


def _per_layer(sizes: Sizes) -> bool:
    return any(isinstance(item, Sequence) for item in sizes)


def _lists(sizes: Sizes, layers: int, option: str) -> Sequence[Sequence[int]]:
    lists: list[Sequence[int]] = [item for item in sizes if isinstance(item, Sequence)]
    if lists and len(lists) < len(sizes):
        raise IllegalInput(
            f"{option} mixes lists and single widths; give one list for all layers, or one list per layer"
        )
    if not lists:
        return [[item for item in sizes if not isinstance(item, Sequence)]] * layers
    if len(lists) != layers:
        raise IllegalInput(f"{option} has {len(lists)} lists of widths for {layers} layers")
    return lists


def _within(one: ElasticPart, options: Sequence[int]) -> tuple[int, ...]:
    """List the sizes of a layer that a part may have: several maps have one list, each up to its own width."""
    several = one.option == "feed_forward" and one.name != one.option
    return tuple(option for option in options if not several or option <= one.most)


def _checked(key: str, index: int, one: ElasticPart, options: Sequence[int]) -> tuple[int, ...]:
    options = _within(one, options)
    if not options or any(type(option) is not int or not one.least <= option <= one.most for option in options):
        raise IllegalInput(
            f"{one.option} of layer {index} must be whole numbers between {one.least} and the {key}'s {one.most}, "
            f"not {list(options)}"
        )
    if one.cut == "centred" and any((option - one.most) % 2 for option in options):
        raise IllegalInput(
            f"{one.option} of layer {index} lie around one centre, so that all sizes must be "
            f"{'odd' if one.most % 2 else 'even'}, like {one.most}"
        )
    return options


def _hidden(key: str, sizes: Sequence[int], stack: Stack) -> tuple[int, ...]:
    most = stack.embedding.width
    if sizes and any(not isinstance(layer, Block) or layer.width != most for layer in stack.layers):
        raise IllegalInput(f"hidden sizes need all layers of the {key} to be blocks as wide as its embedding")
    if any(type(size) is not int or not 1 <= size <= most for size in sizes):
        raise IllegalInput(f"hidden must be whole numbers between 1 and the {key}'s {most}, not {list(sizes)}")
    return tuple(sizes)


@dataclass(frozen=True)
class FurtherSizes:
    """List the sizes of an elastic field that has no option of its own, for each layer; `option` is "mixer_experts"."""

    option: str
    sizes: Lists


@dataclass(frozen=True)
class ElasticChoices:
    """List the sizes that every layer of a design may have, the encoder's layers first, and the hidden sizes.

    0 leaves a part of a layer out. A layer without a part has an empty list for it. Parts for which there are no lists
    stay whole, and without hidden sizes those of the design stay; `decoder_hidden` is for translators with two.
    """

    card: Card
    heads: Lists = ()
    feed_forward: Lists = ()
    hidden: tuple[Positive, ...] = ()
    cross: Lists = ()
    kernels: Lists = ()
    decoder_hidden: tuple[Positive, ...] = ()
    further: tuple[FurtherSizes, ...] = ()

    def __post_init__(self) -> None:
        parts = [{one.option for one in elastic_parts(layer)} for layer in layers_of(self.card)]
        faults = [
            Fault(name, "needs a size for every layer that has the part, and an empty list for every other layer")
            for name, lists in self._lists.items()
            if [bool(one) for one in lists] != [name in own for own in parts]
        ]
        if faults:
            raise IllegalDesign(faults, what="elastic space")

    @property
    def _lists(self) -> dict[str, Lists]:
        named = {name: getattr(self, name) for name in OPTIONS} | {one.option: one.sizes for one in self.further}
        return {name: lists for name, lists in named.items() if lists}

    @property
    def space(self) -> Space:
        lists: dict[str, Any] = dict(self._lists)
        hidden: Any = self.hidden
        if len(self.card.stacks) > 1:
            first = len(self.card.stacks[0].layers)
            lists = {name: {"encoder": one[:first], "decoder": one[first:]} for name, one in lists.items()}
            decoder = self.hidden if shares_hidden(self.card) else self.decoder_hidden
            hidden = {"encoder": self.hidden, "decoder": decoder}
        return elastic(self.card, **lists, hidden=hidden)

    def sizes_of(self, layer: int, part: ElasticPart) -> tuple[int, ...]:
        """List the sizes that a part of a layer may have; only its own where there is no choice."""
        lists = self._lists.get(part.option)
        return (part.most,) if lists is None else _within(part, lists[layer])

    @property
    def largest(self) -> Card:
        return self.space.card(self._picked(lambda index, name, sizes: max(sizes)))

    @property
    def smallest(self) -> Card:
        return self.space.card(self._picked(lambda index, name, sizes: min(sizes)))

    @property
    def count(self) -> int:
        return self.space.count()

    def design(self, sizes: LayerSizes, hidden: int | None = None) -> Any:
        """Return the design of a sub-network by the sizes of each layer's `scored_parts`.

        Its kernels and hidden sizes are the largest, unless another hidden size is given.
        """
        layers = zip(layers_of(self.card), sizes, strict=True)
        rows = [dict(zip((one.name for one in scored_parts(layer)), own, strict=True)) for layer, own in layers]

        def pick(index: int, name: str, options: Sequence[int]) -> int:
            return (hidden or max(options)) if name == "hidden" else rows[index].get(name, max(options))

        return self._picked(pick)

    def _picked(self, pick: Callable[[int, str, Sequence[int]], int]) -> Any:
        """Build a design by a function of the number of a layer, the name of a part or `hidden`, and the choices."""
        space, first = self.space, len(self.card.stacks[0].layers)

        def filled(part: Any, path: tuple[str, ...]) -> Any:
            if isinstance(part, Record):
                return {key: filled(below, (*path, key)) for key, below in part.fields}
            if isinstance(part, Repeat):
                return [filled(part.part, (*path, f"layer_{index}")) for index in range(max(part.lengths))]
            above = first if path[0] == "decoder" and len(self.card.stacks) > 1 else 0
            index = 0 if path[-1] == "hidden" else above + int(path[-2].removeprefix("layer_"))
            return pick(index, path[-1], part.options)

        return space.from_json(filled(space.root, ()))

    def to_json(self) -> dict[str, Any]:
        return write(self)  # type: ignore[no-any-return]

    @classmethod
    def from_json(cls, data: Any) -> "ElasticChoices":
        """Read what `to_json` wrote; raise `IllegalDesign` with every fault and where it is."""
        return read(cls, data, "elastic space")
