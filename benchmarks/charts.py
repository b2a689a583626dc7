"""Line charts as SVG, for the documentation: curves with a band of uncertainty, and clouds of points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 460, 64, 230, 34, 48
# Paul Tol's "muted" scheme and two greys, told apart by colour-blind people as well
COLOURS = ("#332288", "#CC6677", "#117733", "#88CCEE", "#DDCC77", "#AA4499", "#44AA99", "#999933", "#882255", "#666666")


@dataclass(frozen=True)
class Line:
    """One curve; `low` and `high` bound its band, `dots` draws its points instead of a line between them."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    dots: bool = False
    dashed: bool = False


@dataclass(frozen=True)
class Axis:
    """What an axis shows, from where to where; `pixels` are those of its two ends."""

    title: str
    low: float
    high: float
    pixels: tuple[float, float]
    logarithmic: bool = False

    def place(self, value: float) -> float:
        low, high, value = (np.log(v) if self.logarithmic else v for v in (self.low, self.high, value))
        share = (value - low) / (high - low)
        return float(self.pixels[0] + np.clip(share, 0, 1) * (self.pixels[1] - self.pixels[0]))

    def ticks(self) -> list[float]:
        if self.logarithmic:
            steps = [base * 10.0**power for power in range(-3, 9) for base in (1, 2, 5)]
            return [step for step in steps if self.low <= step <= self.high]
        size = 10.0 ** np.floor(np.log10((self.high - self.low) / 4))
        step = next(size * times for times in (1, 2, 5, 10) if (self.high - self.low) / (size * times) <= 7)
        return [float(v) for v in np.arange(np.ceil(self.low / step), np.floor(self.high / step) + 1) * step]


def chart(
    title: str, lines: Sequence[Line], x: str, y: str, *, y_from: float | None = None, log_x: bool = False
) -> str:
    """Draw curves; what lies below `y_from` is drawn on the lower edge."""
    across = np.concatenate([line.x for line in lines])
    values = np.concatenate([np.concatenate([line.y, line.low, line.high]) for line in lines])
    low = float(values.min()) if y_from is None else y_from
    margin = 0.03 * (float(values.max()) - low)
    horizontal = Axis(x, *_extent(float(across.min()), float(across.max())), (LEFT, WIDTH - RIGHT), log_x)
    vertical = Axis(y, *_extent(low, float(values.max()) + margin), (HEIGHT - BOTTOM, TOP))
    parts = [_frame(title, horizontal, vertical)]
    parts += [_line(line, COLOURS[n % len(COLOURS)], horizontal, vertical) for n, line in enumerate(lines)]
    parts += [_legend(line, COLOURS[n % len(COLOURS)], n) for n, line in enumerate(lines)]
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    style = 'font-family="sans-serif" font-size="12" fill="#222"'
    sheet = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{sheet}{"".join(parts)}</svg>\n'


def _extent(low: float, high: float) -> tuple[float, float]:
    """Give both ends of an axis, apart from each other even where all values are the same."""
    return (low, high) if low < high else (0.9 * low - 0.01, 1.1 * high + 0.01)


def _frame(title: str, x: Axis, y: Axis) -> str:
    left, right, bottom, top = *x.pixels, *y.pixels
    parts = [f'<text x="{left}" y="{top - 14}" font-size="15">{escape(title)}</text>']
    for tick in y.ticks():
        at = y.place(tick)
        parts.append(f'<path d="M{left} {at:.1f}H{right}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in x.ticks():
        parts.append(f'<text x="{x.place(tick):.1f}" y="{bottom + 18}" text-anchor="middle">{tick:,g}</text>')
    parts.append(f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="#222"/>')
    parts.append(f'<text x="{(left + right) / 2}" y="{bottom + 38}" text-anchor="middle">{escape(x.title)}</text>')
    middle = (top + bottom) / 2
    turned = f'transform="rotate(-90 16 {middle})" text-anchor="middle"'
    return "".join([*parts, f'<text x="16" y="{middle}" {turned}>{escape(y.title)}</text>'])


def _line(line: Line, colour: str, x: Axis, y: Axis) -> str:
    places = [(x.place(a), y.place(b)) for a, b in zip(line.x, line.y, strict=True)]
    if line.dots:
        return "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.2" fill="{colour}" opacity="0.5"/>' for a, b in places)
    band = ""
    if len(line.low):
        above = [f"{x.place(a):.1f},{y.place(b):.1f}" for a, b in zip(line.x, line.high, strict=True)]
        below = [f"{x.place(a):.1f},{y.place(b):.1f}" for a, b in zip(line.x, line.low, strict=True)]
        band = f'<polygon points="{" ".join(above + below[::-1])}" fill="{colour}" opacity="0.12"/>'
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    dash = ' stroke-dasharray="5 4"' if line.dashed else ""
    return f'{band}<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'


def _legend(line: Line, colour: str, place: int) -> str:
    left, at = WIDTH - RIGHT + 14, TOP + 10 + 18 * place
    if line.dots:
        mark = f'<circle cx="{left + 11}" cy="{at}" r="4" fill="{colour}"/>'
    else:
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        mark = f'<path d="M{left} {at}h22" stroke="{colour}" stroke-width="3"{dash}/>'
    return f'{mark}<text x="{left + 28}" y="{at + 4}">{escape(line.name)}</text>'
