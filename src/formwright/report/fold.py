"""Folding: many equal layers become one box that says how often it stands there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from formwright.arch.layers import Layer

_LONGEST = 256  # runs in a repeated pattern; nobody sees longer ones, and looking for them takes forever


@dataclass(frozen=True)
class Funnel:
    """A linear projection between layers of unequal width."""

    before: int
    after: int


@dataclass(frozen=True)
class Run:
    """The same layer `times` times in a row; `first` counts from 1 within its stack."""

    layer: Layer
    first: int
    times: int

    @property
    def last(self) -> int:
        """Give the number of the last layer of the run."""
        return self.first + self.times - 1


@dataclass(frozen=True)
class Repeat:
    """A pattern of runs `times` times in a row; only its first appearance is listed."""

    runs: tuple[Run, ...]
    times: int

    @property
    def first(self) -> int:
        """Give the number of the first layer."""
        return self.runs[0].first

    @property
    def period(self) -> int:
        """Count the layers of one appearance."""
        return sum(run.times for run in self.runs)

    @property
    def last(self) -> int:
        """Give the number of the last layer of the last appearance."""
        return self.first - 1 + self.times * self.period


def fold(layers: Sequence[Layer]) -> tuple[Repeat, ...]:
    """Fold consecutive equal layers into runs, and consecutive equal patterns of runs into repeats."""
    runs = list(_runs(layers))
    numbers: dict[tuple[Layer, int], int] = {}
    keys = [numbers.setdefault((run.layer, run.times), len(numbers)) for run in runs]
    repeats = []
    start = 0
    while start < len(runs):
        period, times = _best_period(keys, start)
        repeats.append(Repeat(tuple(runs[start : start + period]), times))
        start += period * times
    return tuple(repeats)


def funnel(before: int, after: int) -> Funnel | None:
    """Give the projection between two widths; equal widths need none."""
    return Funnel(before, after) if before != after else None


def inner_funnel(runs: Sequence[Run]) -> Funnel | None:
    """Give the projection that stands between the appearances of a repeated pattern, if any."""
    return funnel(runs[-1].layer.output_width, runs[0].layer.width)


def _runs(layers: Sequence[Layer]) -> Iterator[Run]:
    start = 0
    for index in range(1, len(layers) + 1):
        if index == len(layers) or layers[index] != layers[start]:
            yield Run(layers[start], start + 1, index - start)
            start = index


def _best_period(keys: Sequence[int], start: int) -> tuple[int, int]:
    """Find the pattern from here on that leaves the fewest boxes to draw: its length, and how often it stands there."""
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
