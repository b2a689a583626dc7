"""The latency of designs on this machine: measured once, and again before a design is rejected for it.

The parts of a design are measured too, so that the latency of its sub-networks can be added up.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, CrossAttention
from formwright.core.errors import IllegalInput
from formwright.cost.latency_tables import LatencyTable, OperationTimes, PartTimes
from formwright.nn.build import build
from formwright.nn.deploy import Runtime, check_installed
from formwright.nn.measurement import KINDS, Latency, TimingSettings, measure
from formwright.space.elastic import elastic
from formwright.space.elastic_parts import scored_parts, shares_hidden, stacks_of
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
_ROUNDS = 3  # every model is measured in every round, so that a busy moment does not affect one of them alone
Hidden = tuple[int, ...]  # the hidden size of each stack, the encoder's first
Part = tuple[Hidden, str, str]  # hidden sizes, a stack and a part of its layers, by the names of `elastic`


def measured_table(
    card: Card, hidden: Sequence[int] = (), *, measured: Measured, after: Callable[[], None] | None = None
) -> LatencyTable:
    """Measure a design with fewer heads or channels in all layers of a stack; `after` is called after each model.

    This is done at its own hidden size and at those given, for a translator with two at all pairs of them. The time of
    a part is the difference between the model with and without it, divided by the number of layers. It is made
    non-decreasing in the width, since a decrease is noise. Raise `IllegalInput` where the layers of a stack differ.
    """
    most = {name: _full(stack) for name, stack in stacks_of(card).items()}
    pairs = _hidden_sizes(card, hidden)
    cards = {
        part: {size: _cut(card, part, size) for size in _points(most[part[1]][part[2]])}
        for part in dict.fromkeys(part for pair in pairs for part in _parts(card, pair, most))
    }
    times = {one: np.inf for sizes in cards.values() for one in sizes.values()}  # the full model once
    for _ in range(_ROUNDS):
        for one, least in times.items():
            times[one] = min(least, measured(one))
            if after is not None:
                after()
    return _table(card, pairs, {part: {size: times[one] for size, one in cards[part].items()} for part in cards}, most)


def quick(length: int, threads: int = 1) -> Measured:
    return lambda card: measured_latency(card, length, threads=threads).median_ms


def _full(stack: Stack) -> dict[str, int]:
    """Give the sizes of the parts that all layers of a stack have; refuse layers that differ."""
    layer, *others = dict.fromkeys(stack.layers)
    ordinary = (
        isinstance(layer, Block)
        and isinstance(layer.mixer, Attention)
        and isinstance(layer.cross, CrossAttention | None)
        and len(layer.feed_forward) == 1
    )
    if others or not ordinary:
        raise IllegalInput(
            "the latency of parts is measured where all layers of a stack have the same heads and channels; this "
            "model's differ. Give targets in MACs or parameters, such as macs=50%"
        )
    return {one.option: one.most for one in scored_parts(layer)}


def _hidden_sizes(card: Card, hidden: Sequence[int]) -> list[Hidden]:
    """List the hidden sizes of the stacks that are measured together."""
    own = [stack.output_width for stack in card.stacks]
    if shares_hidden(card):
        return [(size,) * len(own) for size in sorted({*hidden, own[0]})]
    return list(product(*(sorted({*hidden, size}) for size in own)))


def _parts(card: Card, sizes: Hidden, most: Mapping[str, Mapping[str, int]]) -> list[Part]:
    """List the parts that tell the times at some hidden sizes.

    An encoder's take the same time whatever the hidden size of the decoder, and are measured at the decoder's own.
    """
    found: list[Part] = []
    for place, (name, parts) in enumerate(most.items()):
        above = (
            sizes
            if shares_hidden(card)
            else (*sizes[: place + 1], *(one.output_width for one in card.stacks[place + 1 :]))
        )
        found += [(above, name, part) for part in parts]
    return found


def _cut(card: Card, part: Part, size: int) -> Card:
    """Cut a design to hidden sizes, and a part of all layers of a stack to a size."""
    sizes, stack, option = part
    narrow = {
        name: (width,)
        for (name, one), width in zip(stacks_of(card).items(), sizes, strict=True)
        if width != one.output_width
    }
    chosen: dict[str, Any] = {option: {stack: (size,)}}
    space = elastic(card, hidden=narrow, **chosen)
    return space.card(next(iter(space.enumerate())))


def _table(
    card: Card,
    pairs: Sequence[Hidden],
    times: Mapping[Part, Mapping[int, float]],
    most: Mapping[str, Mapping[str, int]],
) -> LatencyTable:
    """Tell the parts apart by what models took that had them in full and in less."""
    layers = {name: len(stack.layers) for name, stack in stacks_of(card).items()}
    by_hidden: dict[int, PartTimes] = {}
    for pair in pairs:
        parts = _parts(card, pair, most)
        own: dict[str, dict[str, dict[int, float]]] = {name: {} for name in most}
        for part in parts:
            own[part[1]][part[2]] = _rising(times[part], layers[part[1]])
        whole = times[parts[-1]][most[parts[-1][1]][parts[-1][2]]]  # the last part is measured at both hidden sizes
        added = sum(layers[name] * max(one.values()) for name, found in own.items() for one in found.values())
        first, *above = own.values()
        if not above:
            by_hidden[pair[0]] = _part_times(whole - added, first)
            continue
        others = by_hidden[pair[0]].decoder if pair[0] in by_hidden else {}
        decoder = {**others, pair[1]: _part_times(whole - added, above[0])}
        by_hidden[pair[0]] = replace(_part_times(0.0, first), decoder=decoder)
    return LatencyTable(by_hidden, card.family)


def _part_times(rest: float, parts: Mapping[str, Mapping[int, float]]) -> PartTimes:
    return PartTimes(max(rest, 0.0), parts["heads"], parts["feed_forward"], parts.get("cross", {0: 0.0}))


def _points(most: int) -> list[int]:
    return sorted({round(share * most) for share in np.linspace(0, 1, _POINTS)})


def _rising(times: Mapping[int, float], layers: int) -> dict[int, float]:
    """Return what one layer takes more than without the part."""
    more = [(time - times[0]) / layers for time in times.values()]
    return dict(zip(times, np.maximum.accumulate(more).tolist(), strict=True))


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
    times = dict.fromkeys(cards, np.inf)
    for turn in range(_ROUNDS):
        for number, (key, card) in enumerate(cards.items()):
            times[key] = min(times[key], measured(card))
            if after is not None:
                after(turn * len(cards) + number)
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
    return _ROUNDS * len(_operation_cards(menu))


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
