"""Blocks as boxes: the mixer with its heads, cross-attention, and the feed-forward stack as bars."""

from formwright.arch.layers import Block
from formwright.arch.ops import CrossAttention, Identity, Operation
from formwright.report.fold import Funnel, Run
from formwright.report.palette import Swatch, swatch
from formwright.report.svg_canvas import (
    BAR,
    EDGE,
    FAINT,
    FILL,
    LINE,
    SHEET,
    STRIP,
    WIRE,
    Drawn,
    element,
    number,
    path,
    pill,
    point,
    rect,
)
from formwright.report.svg_column import Column
from formwright.report.words import describe, describe_feed_forward, describe_funnel, describe_layer, heading, heads_of

HEADER, TILE, BAR_HEIGHT, BAR_STEP, GAP = 32, 22, 9, 13, 27
_MOST_TILES, _THINNEST = 32, 2.8


def sheet(column: Column, width: int, top: float, height: float, times: int) -> list[str]:
    """Draw the box of a layer; one that stands for several lies on a pile, with a badge that counts them."""
    left, size = column.left(width), column.box(width)
    shifts = range(pile_height(times), 0, -4)
    pile = [rect(left + shift, top + shift, size, height, SHEET, stroke=EDGE, rx=7) for shift in shifts]
    badge = pill(left + size - 6, top, times) if times > 1 else []
    return [*pile, rect(left, top, size, height, SHEET, stroke=EDGE, rx=7, class_="layer"), *badge]


def pile_height(times: int) -> int:
    """Give how far the pile under a box reaches below it."""
    return 4 * min(times - 1, 2)


def title(column: Column, run: Run, top: float) -> str:
    """Write which layers a box stands for."""
    return column.title(top + 14, f"{heading(run.first, run.last)}, {describe_layer(run.layer)}")


def block_box(column: Column, run: Run, block: Block, top: float) -> Drawn:
    """Draw a block."""
    elements, ports = [], []
    y: float = top + HEADER
    for operation in [block.mixer] if block.cross is None else [block.mixer, block.cross]:
        words = column.broken(describe(operation))
        row = max(TILE, len(words) * LINE)
        elements += [] if isinstance(operation, Identity) else _residual(column, block, y, row)
        elements += tiles(operation, column.centre, y + (row - TILE) / 2, column.inside(block.width))
        elements += column.words(y + row / 2, words)
        if isinstance(operation, CrossAttention):
            ports.append(column.port(block.width, y + row / 2, reads=operation.layers))
        y += row + GAP
    if block.feed_forward:
        drawn = _feed_forward(column, block, y)
        elements += drawn.elements
        y = drawn.bottom + GAP
    bottom = y - GAP + 20
    ports.append(column.port(block.width, bottom - 12, layer=run.last))
    stem = path(f"M{point(column.centre, top)}V{number(bottom)}", FAINT)
    box = [*sheet(column, block.width, top, bottom - top, run.times), title(column, run, top), stem]
    return Drawn((*box, *elements), bottom + pile_height(run.times), tuple(ports))


def tiles(operation: Operation, centre: float, top: float, room: float, height: float = TILE) -> list[str]:
    """Draw an operation as a bar in its colour, cut into its heads; heads that do not fit fade out."""
    look, heads = swatch(operation), heads_of(operation)
    shown = min(heads, _MOST_TILES, max(1, int(room / _THINNEST)))
    gap = min(3.0, 0.25 * room / shown)
    each = (room - gap * (shown - 1)) / shown
    lefts = [centre - room / 2 + index * (each + gap) for index in range(shown)]
    fades = [0.35 if heads > shown and index == shown - 1 else 1.0 for index in range(shown)]
    return [_tile(look, left, top, each, height, fade) for left, fade in zip(lefts, fades, strict=True)]


def _tile(look: Swatch, left: float, top: float, width: float, height: float, fade: float) -> str:
    if look.filled:
        return rect(left, top, width, height, look.colour, rx=min(3, width / 3), fill_opacity=fade, class_="head")
    return rect(left, top, width, height, "none", rx=3, stroke=WIRE, stroke_dasharray="4 3", class_="head")


def _residual(column: Column, block: Block, y: float, row: float) -> list[str]:
    """Draw what surrounds a part: its norm, and the line that carries its input past it."""
    inner, size = column.inside(block.width), column.box(block.width)
    norm = y - 7 if block.norm == "pre" else y + row + 10
    left, start, end = column.centre - (inner + size) / 4, y - 12, y + row + 6
    line = f"M{point(column.centre, start)}H{number(left + 4)}q-4,0 -4,4V{number(end - 4)}q0,4 4,4H"
    head = element("path", d=f"M{point(column.centre - 5, end - 3)}v6l5,-3z", fill=FAINT)
    strip = rect(column.centre - inner / 2, norm, inner, 3, STRIP, rx=1.5, class_="norm")
    return [path(f"{line}{number(column.centre - 4)}", FAINT, class_="residual"), head, strip]


def _feed_forward(column: Column, block: Block, top: float) -> Drawn:
    words = column.broken(describe_feed_forward(block))
    bars = len(block.feed_forward) * BAR_STEP - (BAR_STEP - BAR_HEIGHT)
    row = max(bars, len(words) * LINE)
    elements = [*_residual(column, block, top, row), *column.words(top + row / 2, words)]
    for index, width in enumerate(block.feed_forward):
        y = top + (row - bars) / 2 + index * BAR_STEP
        elements.append(bar(column, width, y, BAR_HEIGHT))
    return Drawn(tuple(elements), top + row)


def bar(column: Column, width: int, top: float, height: float) -> str:
    """Draw a feed-forward width as a bar."""
    length = max(4.0, width * column.bar_scale)
    return rect(column.centre - length / 2, top, length, height, BAR, rx=2, class_="feed-forward")


def trapezoid(column: Column, funnel: Funnel, top: float) -> Drawn:
    """Draw a projection between two widths."""
    above, below = column.box(funnel.before) / 2, column.box(funnel.after) / 2
    corners = [(-above, top), (above, top), (below, top + 24), (-below, top + 24)]
    points = " ".join(point(column.centre + x, y) for x, y in corners)
    shape = element("polygon", points=points, fill=FILL, stroke=EDGE, stroke_linejoin="round", class_="projection")
    words = column.words(top + 12, [describe_funnel(funnel)])
    return Drawn((shape, *words), top + 24)
