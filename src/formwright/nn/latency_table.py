"""Measure the parts of an encoder on this machine, so that the latency of its sub-networks can be added up."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.cost.latency_table import LatencyTable, PartTimes
from formwright.nn.build import build
from formwright.nn.measure import Trial, measure
from formwright.space.zoo.elastic import elastic

Measured = Callable[[Card], float]
_POINTS = 7  # widths of a part that are measured, both ends among them
_ROUNDS = 3  # each in every round, so that a busy moment of the machine does not fall on one of them alone


def measured_table(
    card: Card, hidden: Sequence[int] = (), *, measured: Measured, after: Callable[[], None] | None = None
) -> LatencyTable:
    """Measure an encoder with fewer heads or channels in all layers alike; `after` is called after each model.

    That is done at its own hidden size and at those that are given. The time of a part is what all layers take more
    with it than without it, divided by their number. It never falls with the width: where a narrower part was measured
    to take longer, that was noise.
    """
    sizes = sorted({*hidden, card.output_width})
    return LatencyTable({size: _times(card, size, measured, after) for size in sizes})


def quick(length: int, threads: int = 1) -> Measured:
    """Measure one row of so many tokens."""

    def milliseconds(card: Card) -> float:
        return measure(build(card), Trial(1, length, threads, runs=20, warmup=3), memory=False).median_ms

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
    """Give what one layer takes more than without the part."""
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
