"""Layers as they are drawn: equal layers and repeated patterns folded into one, and one scale for all widths."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from formwright.arch.card import Card
from formwright.arch.layers import Block, Layer

MANY = 24  # from this many boxes on, a drawing gives a layer one row instead of a box
_LONGEST = 256  # runs in a repeated pattern; nobody sees longer ones, and looking for them takes forever


@dataclass(frozen=True)
class Projection:
    """A linear projection between layers of unequal width."""

    before: int
    after: int


@dataclass(frozen=True)
class LayerRun:
    """The same layer `times` times in a row; `first` counts from 1 within its stack."""

    layer: Layer
    first: int
    times: int

    @property
    def last(self) -> int:
        return self.first + self.times - 1


@dataclass(frozen=True)
class RepeatedPattern:
    """A pattern of runs, `times` times in a row; `runs` lists its first occurrence."""

    runs: tuple[LayerRun, ...]
    times: int

    @property
    def first(self) -> int:
        return self.runs[0].first

    @property
    def period(self) -> int:
        """Return the number of layers in one occurrence."""
        return sum(run.times for run in self.runs)

    @property
    def last(self) -> int:
        """Return the number of the last layer of the last occurrence."""
        return self.first - 1 + self.times * self.period


def fold_layers(layers: Sequence[Layer]) -> tuple[RepeatedPattern, ...]:
    """Fold consecutive equal layers into runs, and consecutive equal patterns of runs into repeated patterns."""
    runs: list[LayerRun] = []
    for layer, same in groupby(layers):
        first = runs[-1].last + 1 if runs else 1
        runs.append(LayerRun(layer, first, len(list(same))))
    numbers: dict[tuple[Layer, int], int] = {}
    keys = [numbers.setdefault((run.layer, run.times), len(numbers)) for run in runs]
    repeats = []
    start = 0
    while start < len(runs):
        period, times = _best_period(keys, start)
        repeats.append(RepeatedPattern(tuple(runs[start : start + period]), times))
        start += period * times
    return tuple(repeats)


def inner_projection(runs: Sequence[LayerRun]) -> Projection | None:
    """Return the projection between two occurrences of a repeated pattern, if any."""
    before, after = runs[-1].layer.output_width, runs[0].layer.width
    return Projection(before, after) if before != after else None


def _best_period(keys: Sequence[int], start: int) -> tuple[int, int]:
    """Return the length and the repetitions of the pattern, starting here, that leaves the fewest boxes to draw."""
    best, saved = (1, 1), 0
    for period in range(2, min(_LONGEST, (len(keys) - start) // 2) + 1):
        if keys[start + period] != keys[start]:
            continue
        pattern, times = keys[start : start + period], 1
        while keys[start + times * period : start + (times + 1) * period] == pattern:
            times += 1
        if period * (times - 1) > saved:
            best, saved = (period, times), period * (times - 1)
    return best


def widest(card: Card) -> int:
    """Return the greatest width that a drawing must show."""
    found = {width for stack in card.stacks for layer in stack.layers for width in (layer.width, layer.output_width)}
    tables = [(stack.embedding.width, getattr(stack.embedding, "table_width", 0)) for stack in card.stacks]
    return max(*found, *(width for both in tables for width in both), *(stack.output_width for stack in card.stacks))


def bar_scale(card: Card, inside: Callable[[int], float]) -> float:
    """Return the length of one unit of feed-forward width at which the fullest box just holds its bars.

    `inside` tells the length that is free in the box of a layer of some width.
    """
    blocks = {layer for stack in card.stacks for layer in stack.layers if isinstance(layer, Block)}
    return min((inside(block.width) / max(block.feed_forward) for block in blocks if block.feed_forward), default=0.0)
