"""Blocks as boxes: the mixer with its heads, cross-attention, and the feed-forward stack as bars."""

from formwright.arch.layers import Block
from formwright.arch.ops import CrossAttention, Operation
from formwright.report.fold import Funnel, Run
from formwright.report.palette import Swatch, swatch
from formwright.report.svg_canvas import (
    BAR,
    EDGE,
    FILL,
    LINE,
    SHEET,
    STRIP,
    WIRE,
    Drawn,
    Port,
    element,
    number,
    path,
    pill,
    point,
    rect,
)
from formwright.report.svg_column import Column
from formwright.report.words import describe, describe_feed_forward, describe_layer, heading, heads_of

HEADER, TILE, BAR_HEIGHT, BAR_STEP, GAP = 26, 22, 9, 13, 13
_MOST_TILES = 32


def sheet(column: Column, width: int, top: float, height: float, times: int) -> list[str]:
    """Draw the box of a layer; one that stands for several lies on a pile, with a badge that counts them."""
    left, size = column.left(width), column.box(width)
    pile = [8, 4, 0] if times > 2 else [4, 0] if times == 2 else [0]
    papers = [
        rect(
            left + shift, top + shift, size, height, SHEET, stroke=EDGE, rx=7, class_="layer" if shift == 0 else "pile"
        )
        for shift in pile
    ]
    return papers + (pill(left + size - 6, top, times) if times > 1 else [])


def pile_height(times: int) -> int:
    """Give how far the pile under a box reaches below it."""
    return 4 * min(times - 1, 2)


def title(column: Column, run: Run, top: float) -> str:
    """Write which layers a box stands for."""
    return column.title(top + 14, f"{heading(run.first, run.last)}, {describe_layer(run.layer)}")


def block_box(column: Column, run: Run, block: Block, top: float) -> Drawn:
    """Draw a block."""
    elements, ports = [], []
    y = top + HEADER
    for operation in [block.mixer] if block.cross is None else [block.mixer, block.cross]:
        words = column.broken(describe(operation))
        row = max(TILE, len(words) * LINE)
        elements += _framed(column, block, y, row, operation.TYPE != "identity")
        elements += tiles(operation, column.centre, y + (row - TILE) / 2, column.inside(block.width))
        elements += column.words(y + row / 2, words)
        if isinstance(operation, CrossAttention):
            ports.append(_port(column, block.width, y + row / 2, reads=operation.layers))
        y += row + GAP
    if block.feed_forward:
        row = _feed_forward_height(column, block)
        elements += _framed(column, block, y, row, True) + _feed_forward(column, block, y, row)
        y += row + GAP
    bottom = y - GAP + 14
    ports.append(_port(column, block.width, bottom - 12, layer=run.last))
    box = [*sheet(column, block.width, top, bottom - top, run.times), title(column, run, top)]
    return Drawn((*box, *elements), bottom + pile_height(run.times), tuple(ports))


def tiles(operation: Operation, centre: float, top: float, room: float, height: float = TILE) -> list[str]:
    """Draw an operation as a bar in its colour, cut into its heads; heads that do not fit fade out."""
    look, heads = swatch(operation), heads_of(operation)
    shown = min(heads, _MOST_TILES, max(1, int(room / 7)))
    gap = 3 if shown <= 16 else 2
    each = (room - gap * (shown - 1)) / shown
    lefts = [centre - room / 2 + index * (each + gap) for index in range(shown)]
    fades = [0.35 if heads > shown and index == shown - 1 else 1.0 for index in range(shown)]
    return [_tile(look, left, top, each, height, fade) for left, fade in zip(lefts, fades, strict=True)]


def _tile(look: Swatch, left: float, top: float, width: float, height: float, fade: float) -> str:
    if look.filled:
        return rect(left, top, width, height, look.colour, rx=3, fill_opacity=fade, class_="head")
    return rect(left, top, width, height, "none", rx=3, stroke=WIRE, stroke_dasharray="4 3", class_="head")


def _framed(column: Column, block: Block, y: float, row: float, exists: bool) -> list[str]:
    """Draw what surrounds a part that exists: its norm, and the residual line past it."""
    if not exists:
        return []
    inner = column.inside(block.width)
    left = column.centre - inner / 2
    norm = y - 7 if block.norm == "pre" else y + row + 4
    out = (column.box(block.width) - inner) / 4
    start, end = y - 9.5, y + row + 2
    bracket = f"M{point(left, start)}h{number(-out)}q-4,0 -4,4V{number(end - 4)}q0,4 4,4h{number(out - 3)}"
    head = element("path", d=f"M{point(left - 4, end - 2.5)}v5l4,-2.5z", fill=WIRE)
    return [rect(left, norm, inner, 3, STRIP, rx=1.5), path(bracket, stroke_width=1, class_="residual"), head]


def _feed_forward_height(column: Column, block: Block) -> float:
    bars = len(block.feed_forward) * BAR_STEP - (BAR_STEP - BAR_HEIGHT)
    return max(bars, len(column.broken(describe_feed_forward(block))) * LINE)


def _feed_forward(column: Column, block: Block, y: float, row: float) -> list[str]:
    elements = column.words(y + row / 2, column.broken(describe_feed_forward(block)))
    top = y + (row - len(block.feed_forward) * BAR_STEP + (BAR_STEP - BAR_HEIGHT)) / 2
    for index, width in enumerate(block.feed_forward):
        length = max(4.0, width * column.bar_scale)
        elements.append(
            rect(
                column.centre - length / 2, top + index * BAR_STEP, length, BAR_HEIGHT, BAR, rx=2, class_="feed-forward"
            )
        )
    return elements


def _port(column: Column, width: int, y: float, *, layer: int = 0, reads: int = 0) -> Port:
    return Port(column.left(width), column.left(width) + column.box(width), y, layer, reads)


def trapezoid(column: Column, funnel: Funnel, top: float) -> Drawn:
    """Draw a projection between two widths."""
    above, below = column.box(funnel.before) / 2, column.box(funnel.after) / 2
    corners = [(-above, top), (above, top), (below, top + 24), (-below, top + 24)]
    points = " ".join(point(column.centre + x, y) for x, y in corners)
    shape = element("polygon", points=points, fill=FILL, stroke=EDGE, stroke_linejoin="round", class_="projection")
    words = column.words(top + 12, [f"projection {funnel.before} → {funnel.after}"])
    return Drawn((shape, *words), top + 24)
