"""Measure the parts of an encoder on this machine, so that the latency of a design can be added up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.cost.latency_tables import LatencyTable, OperationTimes, PartTimes
from formwright.nn.build import build
from formwright.nn.measure import TimingSettings, measure
from formwright.space.zoo.chains import REAL, Menu, candidate
from formwright.space.zoo.elastic import elastic

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
    """Return a function that measures one row of `length` tokens."""

    def milliseconds(card: Card) -> float:
        return measure(build(card), TimingSettings(1, length, threads, runs=20, warmup=3), memory=False).median_ms

    return milliseconds


def _times(card: Card, hidden: int, measured: Measured, after: Callable[[], None] | None) -> PartTimes:
    most_heads, most_channels, layers = _full(card)
    uniform = {(heads, most_channels) for heads in _points(most_heads)}
    uniform |= {(most_heads, channels) for channels in _points(most_channels)}
    times = dict.fromkeys(sorted(uniform), np.inf)
    for _ in range(_ROUNDS):
        for widths in times:
            times[widths] = min(times[widths], measured(_uniform(card, *widths, hidden)))
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


def _uniform(card: Card, heads: int, channels: int, hidden: int) -> Card:
    space = elastic(card, [heads], [channels], hidden=[] if hidden == card.output_width else [hidden])
    return space.card(next(iter(space.enumerate())))


def _full(card: Card) -> tuple[int, int, int]:
    assert card.encoder is not None
    found = {_widths(layer) for layer in card.encoder.layers}
    widths = found.pop()
    if found or widths is None:
        raise IllegalInput(
            "the latency of parts is measured where all layers of a model have as many heads and channels; this one's "
            "differ. Give targets in MACs"
        )
    return *widths, len(card.encoder.layers)


def _widths(layer: object) -> tuple[int, int] | None:
    if not (isinstance(layer, Block) and isinstance(layer.mixer, Attention) and len(layer.feed_forward) == 1):
        return None
    return layer.mixer.heads, layer.feed_forward[0]


_COPIES = 6  # of an operation in the model that is measured: one alone is lost in the noise
_FILLER = "separable-3"  # stands between joints: layers that do nothing cannot change the width
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
    joints = {
        (low, high): _joint(float(times["joint", low, high]) - bare[low], each[_FILLER, low], each[_FILLER, high])
        for name, low, high in cards
        if name == "joint"
    }
    operations = {(name, width): time for (name, width), time in each.items() if width in menu.widths}
    return OperationTimes({width: bare[width] for width in menu.embeddings}, operations, joints)


def _joint(all_layers: float, low: float, high: float) -> float:
    """Return what one joint takes in a model of alternating widths that begins and ends with the lower one."""
    turns = _COPIES // 2
    return max(all_layers - (turns + 1) * low - turns * high, 0.0) / _COPIES


def measurements(menu: Menu) -> int:
    """Count the measurements that a menu takes."""
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
