"""A chart of numbers over numbers as SVG: positions on two axes, and the axes themselves."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from formwright.report.markup import Markup
from formwright.report.svg_canvas import inline, path, point, text

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 1160.0, 350.0, 66.0, 14.0, 26.0, 44.0


@dataclass(frozen=True)
class Chart:
    """A chart from 0 to `last` and from `low` to `high`; values beyond the ends are clamped."""

    last: int
    low: float
    high: float

    def x(self, value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * value / max(1, self.last)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high != self.low else 0.5
        return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * min(1.0, max(0.0, share))

    def point(self, x: float, y: float) -> str:
        return point(self.x(x), self.y(y))

    def draw(self, label: str, across: str, up: str, elements: Iterable[Markup]) -> Markup:
        """Draw elements above the axes, whose names are `across` and `up`."""
        rows = [(self.y(value), f"{value:g}") for value in _ticks(self.low, self.high)]
        lines = [path(f"M{point(_LEFT, y)}H{_WIDTH - _RIGHT:.1f}", "none", class_="rule") for y, _ in rows]
        words = [text(_LEFT - 10, y + 4, one, class_="quiet", text_anchor="end") for y, one in rows]
        low, middle = _HEIGHT - _BOTTOM, (_LEFT + _WIDTH - _RIGHT) / 2
        numbers = [
            text(self.x(value), low + 18, f"{value:,g}", class_="quiet", text_anchor="middle")
            for value in _ticks(0, max(1, self.last))
            if value == int(value)
        ]
        names = [text(middle, low + 36, across, class_="quiet", text_anchor="middle"), text(0, 10, up, class_="quiet")]
        return inline(_WIDTH, _HEIGHT, label, [*lines, *words, *numbers, *names, *elements])


def _ticks(low: float, high: float) -> Sequence[float]:
    """Choose five to ten round numbers between two ends."""
    if low == high:
        return [low]
    size = 10.0 ** np.floor(np.log10((high - low) / 5))
    step = next(size * times for times in (1, 2, 5, 10) if (high - low) / (size * times) <= 10)
    found = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
    return [float(f"{value:.10g}") for value in found]
