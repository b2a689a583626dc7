"""The latency of designs on this machine: measured once, and again before a design is rejected for it.

The parts of a design are measured too, so that the latency of its sub-networks can be added up.
"""

import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, product
from typing import Any, TypeVar

import numpy as np

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Layer, Stack
from formwright.arch.ops import Identity
from formwright.core.errors import IllegalInput
from formwright.cost.latency_tables import LatencyTable, OperationTimes, PartTimes, sizeless_operations
from formwright.nn.build import build
from formwright.nn.deploy import Runtime, check_installed
from formwright.nn.measurement import KINDS, Latency, TimingSettings, measure
from formwright.space.elastic import elastic
from formwright.space.elastic_parts import (
    ElasticPart,
    elastic_parts,
    resized,
    shares_hidden,
    stacks_of,
    with_layers,
    with_stacks,
)
from formwright.space.zoo.chains import REAL, Menu, candidate

REPEATED = 2  # measurements that follow before a design is rejected
_PAUSE = 0.1  # seconds before each of them: a busy moment may be over by then
_REMEMBERED = 256  # designs whose latency is known


class LeastLatency:
    """Give the milliseconds of a card: the least of all measurements, because other work only makes runs slower."""

    def __init__(self, measured: Callable[[Card], Latency], pause: Callable[[float], None] = time.sleep) -> None:
        self._measured, self._pause = measured, pause
        self._known: dict[str, float] = {}
        self.busy = False  # whether the machine was, at the last measurement

    def __call__(self, card: Card) -> float:
        return self._known[card.digest] if card.digest in self._known else self._measure(card)

    def decided(self, card: Card, keeps: Callable[[float], bool]) -> float:
        """Give the milliseconds of a card; where they do not keep a limit, measure again before that is believed."""
        found = self(card)
        for _ in range(REPEATED):
            if keeps(found):
                break
            self._pause(_PAUSE)
            found = self._measure(card)
        return found

    def _measure(self, card: Card) -> float:
        latency = self._measured(card)
        self.busy = latency.busy
        if len(self._known) >= _REMEMBERED and card.digest not in self._known:
            self._known.pop(next(iter(self._known)))
        self._known[card.digest] = min(latency.median_ms, self._known.get(card.digest, latency.median_ms))
        return self._known[card.digest]


class TabledLatency:
    """Give the milliseconds of a card as a table adds them up; nothing is measured, so nothing is measured again."""

    busy = False

    def __init__(self, table: LatencyTable) -> None:
        self._table = table

    def __call__(self, card: Card) -> float:
        return self._table(card)

    def decided(self, card: Card, keeps: Callable[[float], bool]) -> float:
        return self._table(card)


def meter(length: int, device: str = "cpu", **settings: Any) -> LeastLatency:
    """Give what measures cards at `length` tokens on this machine; `settings` are those of `measured_latency`.

    Raise `MissingExtra` where the runtime is not installed: before a study begins, not in each of its trials.
    """
    if (runtime := settings.get("runtime")) in KINDS:
        check_installed(KINDS[runtime])
    return LeastLatency(partial(measured_latency, length=length, device=device, **settings))


def measured_latency(
    card: Card, length: int, device: str = "cpu", threads: int = 1, runtime: Runtime = "torch", **settings: Any
) -> Latency:
    """Measure one row of `length` tokens through a model of a card on this machine.

    `settings` are further ones of `TimingSettings`, such as the rows of a batch or the tokens to write.
    """
    trial = TimingSettings(length=length, threads=threads, runs=20, warmup=3, device=device)
    return measure(build(card), replace(trial, **settings), runtime, memory=False)


Measured = Callable[[Card], float]
_POINTS = 7  # widths of a part that are measured, both ends among them
ROUNDS = 3  # of measuring every model
Key = TypeVar("Key", bound=Hashable)
Hidden = tuple[int, ...]  # the hidden size of each stack, the encoder's first
Part = tuple[Hidden, str, ElasticPart]  # hidden sizes, the name of a stack, and a size of its layers
PartsOf = Mapping[str, Sequence[ElasticPart]]  # by the name of a stack: what can be smaller in all its layers


def least_times(
    cards: Mapping[Key, Card], measured: Measured, after: Callable[[int], None] | None = None
) -> dict[Key, float]:
    """Measure every card in each of `ROUNDS` rounds, so that a busy moment does not affect one alone; give the least.

    `after` receives the number of each measurement, from 0.
    """
    times = dict.fromkeys(cards, math.inf)
    for turn in range(ROUNDS):
        for number, (key, card) in enumerate(cards.items()):
            times[key] = min(times[key], measured(card))
            if after is not None:
                after(turn * len(cards) + number)
    return times


def measured_table(card: Card, hidden: Sequence[int] = (), *, measured: Measured) -> LatencyTable:
    """Measure a design with less of each size of its operations in all layers of a stack, and without the operation.

    This is done at the design's own hidden size and at those given, for a
    translator with two at all pairs of them. The time of a part is the difference between the model with and without
    it, divided by the number of layers. It is made non-decreasing in the size, since a decrease is noise, but for
    kernels. Raise `IllegalInput` where the layers of a stack differ, or have an operation of which nothing can be
    smaller.
    """
    known = {name: _sizes_of(name, stack) for name, stack in stacks_of(card).items()}
    pairs = _hidden_sizes(card, hidden)
    cards = {
        part: {size: _cut(card, part, size) for size in _points(part[2])}
        for part in dict.fromkeys(part for pair in pairs for part in _parts(card, pair, known))
    }
    times = least_times({one: one for sizes in cards.values() for one in sizes.values()}, measured)  # each once
    return _table(card, pairs, {part: {size: times[one] for size, one in cards[part].items()} for part in cards}, known)


def quick(length: int, threads: int = 1) -> Measured:
    return lambda card: measured_latency(card, length, threads=threads).median_ms


_INSTEAD = "Give targets in MACs or parameters, such as macs=50%"


def _sizes_of(name: str, stack: Stack) -> tuple[ElasticPart, ...]:
    """List what can be smaller in all layers of a stack; refuse layers that differ, or that have nothing to measure."""
    layer, *others = dict.fromkeys(stack.layers)
    if others:
        raise IllegalInput(
            f"the latency of parts is measured where all layers of a stack are alike, and the layers of this {name} "
            f"differ. {_INSTEAD}"
        )
    found = elastic_parts(layer)
    without = sizeless_operations(layer) if isinstance(layer, Block) else (layer.TYPE,)
    if without or not found:
        raise IllegalInput(
            f"the latency of this {name} cannot be added up from its parts: its layers contain the operation "
            f"{next(iter(without), 'identity')!r}, of which no smaller version can be measured. {_INSTEAD}"
        )
    return found


def _hidden_sizes(card: Card, hidden: Sequence[int]) -> list[Hidden]:
    """List the hidden sizes of the stacks that are measured together."""
    own = [stack.output_width for stack in card.stacks]
    if shares_hidden(card):
        return [(size,) * len(own) for size in sorted({*hidden, own[0]})]
    return list(product(*(sorted({*hidden, size}) for size in own)))


def _parts(card: Card, sizes: Hidden, known: PartsOf) -> list[Part]:
    """List the parts that tell the times at some hidden sizes.

    An encoder's take the same time whatever the hidden size of the decoder, and are measured at the decoder's own.
    """
    found: list[Part] = []
    for place, (name, parts) in enumerate(known.items()):
        above = (
            sizes
            if shares_hidden(card)
            else (*sizes[: place + 1], *(one.output_width for one in card.stacks[place + 1 :]))
        )
        found += [(above, name, part) for part in parts]
    return found


def _cut(card: Card, part: Part, size: int) -> Card:
    """Cut a design to hidden sizes, and a part of all layers of a stack to a size; 0 leaves the operation out."""
    sizes, name, one = part
    narrow = {
        key: (width,)
        for (key, stack), width in zip(stacks_of(card).items(), sizes, strict=True)
        if width != stack.output_width
    }
    if narrow:
        space = elastic(card, hidden=narrow)
        card = space.card(next(iter(space.enumerate())))
    stacks = stacks_of(card)
    layers = tuple(resized(layer, {one.name: size}) if size else _without(layer, one) for layer in stacks[name].layers)
    return with_stacks(card, {**stacks, name: with_layers(stacks[name], layers)})


def _without(layer: Layer, part: ElasticPart) -> Layer:
    """Leave the operation that has a part out of a layer."""
    left_out: dict[str, Any] = {"mixer": Identity(), "cross": None, "feed_forward": ()}
    return replace(layer, **{part.part: left_out[part.part]})


def _table(
    card: Card, pairs: Sequence[Hidden], times: Mapping[Part, Mapping[int, float]], known: PartsOf
) -> LatencyTable:
    """Tell the parts apart by what models took that had them in full and in less."""
    stacks, by_hidden = stacks_of(card), dict[int, PartTimes]()
    for pair in pairs:
        parts = _parts(card, pair, known)
        own: dict[str, dict[str, dict[int, float]]] = {name: {} for name in known}
        for part in parts:
            own[part[1]][part[2].name] = _per_layer(part[2], times[part], len(stacks[part[1]].layers))
        whole = times[parts[-1]][parts[-1][2].most]  # the last part is measured at both hidden sizes
        added = sum(PartTimes.of_parts(found).of_stack(stacks[name]) for name, found in own.items())
        rest = max(whole - added, 0.0)
        first, *above = own.values()
        if not above:
            by_hidden[pair[0]] = PartTimes.of_parts(first, rest)
            continue
        others = by_hidden[pair[0]].decoder if pair[0] in by_hidden else {}
        decoder = {**others, pair[1]: PartTimes.of_parts(above[0], rest)}
        by_hidden[pair[0]] = replace(PartTimes.of_parts(first), decoder=decoder)
    return LatencyTable(by_hidden, card.family)


def _points(part: ElasticPart) -> list[int]:
    """List the sizes of a part that are measured, from none of it to all."""
    shares = np.linspace(0, 1, _POINTS)
    if part.least == 0:
        return sorted({round(share * part.most) for share in shares})
    step = 2 if part.cut == "centred" else 1  # the ends of a kernel go together
    steps = (part.most - part.least) // step
    return [0, *sorted({part.most - step * round(share * steps) for share in shares})]


def _per_layer(part: ElasticPart, times: Mapping[int, float], layers: int) -> dict[int, float]:
    """Return what one layer takes more than without the part."""
    more = [(time - times[0]) / layers for time in times.values()]
    # more members never take less time, but torch takes longer for kernels of one token than of three
    likely = np.maximum(more, 0.0) if part.cut == "centred" else np.maximum.accumulate(more)
    return dict(zip(times, likely.tolist(), strict=True))


_COPIES = 6  # of an operation in the model that is measured: one alone is lost in the noise
_FILLER = "separable-3"  # the layer between joints: layers that do nothing cannot change the width
_WORDS = 1_000  # looking up a token takes as long in any table


def measured_operations(
    menu: Menu, *, measured: Measured, after: Callable[[int], None] | None = None
) -> OperationTimes:
    """Measure every operation at every width, every width of the token table, and every joint of two widths.

    `after` receives the number of each measurement, from 0 to below `measurements`. A time is the difference between a
    model with and without the part, at least 0.
    """
    cards = _operation_cards(menu)
    times = least_times(cards, measured, after)
    bare = {width: float(times["bare", width, 0]) for width in menu.sizes}
    each = {
        (name, width): max(float(times[name, width, 0]) - bare[width], 0.0) / _COPIES
        for name, width, _ in cards
        if name in REAL
    }
    turns, joints = _COPIES // 2, {}
    for low, high in combinations(menu.sizes, 2):  # widths alternate, the lower one at both ends
        layers = (turns + 1) * each[_FILLER, low] + turns * each[_FILLER, high]
        joints[low, high] = max(float(times["joint", low, high]) - bare[low] - layers, 0.0) / _COPIES
    operations = {(name, width): time for (name, width), time in each.items() if width in menu.widths}
    return OperationTimes({width: bare[width] for width in menu.embeddings}, operations, joints)


def measurements(menu: Menu) -> int:
    return ROUNDS * len(_operation_cards(menu))


def _operation_cards(menu: Menu) -> dict[tuple[str, int, int], Card]:
    cards = {("bare", width, 0): _operation_card(menu, [candidate("identity", width)]) for width in menu.sizes}
    for width in menu.sizes:
        for name in REAL if width in menu.widths else (_FILLER,):
            cards[name, width, 0] = _operation_card(menu, [candidate(name, width, menu.head)] * _COPIES)
    for low, high in combinations(menu.sizes, 2):
        turns = [candidate(_FILLER, high if number % 2 else low) for number in range(_COPIES + 1)]
        cards["joint", low, high] = _operation_card(menu, turns)
    return cards


def _operation_card(menu: Menu, layers: list[Block]) -> Card:
    words = min(_WORDS, menu.tokens.vocabulary)
    table: TokenEmbedding = replace(menu.tokens, vocabulary=words, width=layers[0].width, factorised=None)
    return Card(encoder=Stack(table, tuple(layers)))
