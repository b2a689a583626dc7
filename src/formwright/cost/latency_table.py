"""Milliseconds of an encoder's sub-networks, added up from what their parts took when they were measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.arch.ops import Attention
from formwright.core.checks import finite, stored_fields
from formwright.core.errors import IllegalInput


@dataclass(frozen=True)
class PartTimes:
    """The milliseconds of one layer's parts by their width, and of everything else, at one hidden size.

    Widths that were not measured lie between measured ones, and are interpolated.
    """

    rest: float
    heads: Mapping[int, float] = field(hash=False)
    channels: Mapping[int, float] = field(hash=False)

    def of_heads(self, number: int) -> float:
        """Give what attention with so many heads takes."""
        return _between(self.heads, number)

    def of_channels(self, number: int) -> float:
        """Give what a feed-forward layer of such a width takes."""
        return _between(self.channels, number)


@dataclass(frozen=True)
class LatencyTable:
    """Give the milliseconds of sub-networks without running them; the same card always costs the same."""

    by_hidden: Mapping[int, PartTimes] = field(hash=False)

    def __call__(self, card: Card) -> float:
        """Add up the milliseconds of a card."""
        times = self.by_hidden.get(card.output_width)
        if card.encoder is None or times is None:
            known = ", ".join(map(str, self.by_hidden))
            raise IllegalInput(f"the latency table knows encoders of hidden size {known}, not {card.output_width}")
        parts = [_part_widths(layer) for layer in card.encoder.layers]
        return times.rest + sum(times.of_heads(heads) + times.of_channels(channels) for heads, channels in parts)

    def to_json(self) -> dict[str, Any]:
        """Give plain JSON data."""
        return {
            str(hidden): {
                "rest": times.rest,
                "heads": {str(width): value for width, value in times.heads.items()},
                "channels": {str(width): value for width, value in times.channels.items()},
            }
            for hidden, times in self.by_hidden.items()
        }

    @classmethod
    def from_json(cls, data: Any) -> "LatencyTable":
        """Read what `to_json` gave."""
        return cls({hidden: _times(times) for hidden, times in _by_width("hidden sizes", data).items()})


def _times(data: Any) -> PartTimes:
    values = stored_fields(PartTimes, data)
    parts = {
        name: {width: finite(f"the time of {width} {name}", value) for width, value in widths.items()}
        for name, widths in ((name, _by_width(name, values[name])) for name in ("heads", "channels"))
    }
    return PartTimes(finite("the time of the rest", values["rest"]), **parts)


def _by_width(name: str, data: Any) -> dict[int, Any]:
    if not isinstance(data, Mapping) or not data or not all(str(width).isdecimal() for width in data):
        raise IllegalInput(f"a latency table has the times of its {name} by whole numbers, one or more, not {data!r}")
    return {int(width): value for width, value in data.items()}


def _between(times: Mapping[int, float], width: int) -> float:
    known = sorted(times)
    if not known[0] <= width <= known[-1]:
        raise IllegalInput(f"the latency table knows widths from {known[0]} to {known[-1]}, not {width}")
    return float(np.interp(width, known, [times[one] for one in known]))


def _part_widths(layer: object) -> tuple[int, int]:
    if not isinstance(layer, Block):
        raise IllegalInput("a latency table knows ordinary layers, and no cells")
    heads = layer.mixer.heads if isinstance(layer.mixer, Attention) else 0
    return heads, layer.feed_forward[0] if layer.feed_forward else 0
