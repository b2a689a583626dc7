"""The latency of designs on this machine: measured once, and again before a design is rejected for it.

The parts of an encoder are measured too, so that the latency of a design can be added up.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.cost.latency_tables import LatencyTable, OperationTimes, PartTimes
from formwright.nn.build import build
from formwright.nn.deploy import Runtime, check_installed
from formwright.nn.measurement import KINDS, Latency, TimingSettings, measure
from formwright.space.zoo.chains import REAL, Menu, candidate
from formwright.space.zoo.elastic import elastic

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


def measured_table(
    card: Card, hidden: Sequence[int] = (), *, measured: Measured, after: Callable[[], None] | None = None
) -> LatencyTable:
    """Measure an encoder with fewer heads or channels in all layers; `after` is called after each model.

    This is done at its own hidden size and at those given. The time of a part is the difference between the model with
    and without it, divided by the number of layers. It is made non-decreasing in the width, since a decrease is noise.
    """
    sizes = sorted({*hidden, card.output_width})
    return LatencyTable({size: _times(card, size, measured, after) for size in sizes})


def quick(length: int, threads: int = 1) -> Measured:
    return lambda card: measured_latency(card, length, threads=threads).median_ms


def _times(card: Card, hidden: int, measured: Measured, after: Callable[[], None] | None) -> PartTimes:
    most_heads, most_channels, layers = _full(card)
    uniform = {(heads, most_channels) for heads in _points(most_heads)}
    uniform |= {(most_heads, channels) for channels in _points(most_channels)}
    times = dict.fromkeys(sorted(uniform), np.inf)
    for _ in range(_ROUNDS):
        for widths in times:
            space = elastic(card, widths[:1], widths[1:], hidden=[] if hidden == card.output_width else [hidden])
            times[widths] = min(times[widths], measured(space.card(next(iter(space.enumerate())))))
            if after is not None:
                after()
    heads = _rising({one: times[one, most_channels] for one in _points(most_heads)}, layers)
    channels = _rising({one: times[most_heads, one] for one in _points(most_channels)}, layers)
    rest = times[most_heads, most_channels] - layers * (heads[most_heads] + channels[most_channels])
    return PartTimes(max(rest, 0.0), heads, channels)


def _points(most: int) -> list[int]:
    return sorted({round(share * most) for share in np.linspace(0, 1, _POINTS)})


def _rising(times: Mapping[int, float], layers: int) -> dict[int, float]:
    """Return what one layer takes more than without the part."""
    more = [(time - times[0]) / layers for time in times.values()]
    return dict(zip(times, np.maximum.accumulate(more).tolist(), strict=True))


def _full(card: Card) -> tuple[int, int, int]:
    assert card.encoder is not None
    found = {
        (layer.mixer.heads, layer.feed_forward[0])
        if isinstance(layer, Block) and isinstance(layer.mixer, Attention) and len(layer.feed_forward) == 1
        else None
        for layer in card.encoder.layers
    }
    widths = found.pop()
    if found or widths is None:
        raise IllegalInput(
            "the latency of parts is measured where all layers of a model have as many heads and channels; this one's "
            "differ. Give targets in MACs"
        )
    return *widths, len(card.encoder.layers)


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
