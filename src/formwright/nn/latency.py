"""The latency of designs on this machine: measured once, and again before a design is rejected for it."""

import time
from collections.abc import Callable
from functools import partial

from formwright.arch.card import Card
from formwright.cost.latency_tables import LatencyTable
from formwright.nn.build import build
from formwright.nn.measure import Latency, TimingSettings, measure

REPEATED = 2  # measurements that follow before a design is rejected
_PAUSE = 0.1  # seconds before each of them: a busy moment may be over by then
_REMEMBERED = 256  # designs whose latency is known

Measure = Callable[[Card], Latency]


class LeastLatency:
    """Give the milliseconds of a card: the least of all measurements, because other work only makes runs slower."""

    def __init__(self, measured: Measure, pause: Callable[[float], None] = time.sleep) -> None:
        self._measured, self._pause = measured, pause
        self._known: dict[str, float] = {}
        self.busy = False  # whether the machine was, at the last measurement

    def __call__(self, card: Card) -> float:
        """Give what is known of a card, or else measure it."""
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
        """Add up the parts of a card."""
        return self._table(card)

    def decided(self, card: Card, keeps: Callable[[float], bool]) -> float:
        """Add up the parts of a card."""
        return self._table(card)


def meter(length: int, device: str = "cpu") -> LeastLatency:
    """Give what measures cards at `length` tokens, on a device of this machine."""
    return LeastLatency(partial(measured_latency, length=length, device=device))


def measured_latency(card: Card, length: int, device: str = "cpu") -> Latency:
    """Measure one row of `length` tokens through a model of a card, on a device of this machine, with one thread."""
    return measure(build(card), TimingSettings(1, length, 1, 20, 3, device), memory=False)
