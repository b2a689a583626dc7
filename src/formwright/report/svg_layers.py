"""Layers, embeddings and heads as SVG boxes with words next to them."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

from formwright.arch.card import Card
from formwright.arch.embeddings import Embedding, FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block
from formwright.arch.ops import Identity, Operation
from formwright.report import svg_canvas as svg
from formwright.report import words as wording
from formwright.report.layer_runs import LayerRun, Projection
from formwright.report.markup import Markup, number, tag
from formwright.report.svg_canvas import Anchor, Drawn, Port

_TIMES = re.compile(r" x (?=\d)")
HEADER, TILE, BAR_HEIGHT, BAR_STEP, GAP = 32, 22, 9, 13, 27
_MOST_TILES, _THINNEST = 32, 2.8
_GRID, _MOST_PATCHES = 98, 14
_TABLE_STEP = 11


@dataclass(frozen=True)
class Column:
    """The geometry of one stack: `centre` of its boxes, `room` for the widest, and the position of the words."""

    centre: float
    room: float
    words_at: float
    words_room: float
    anchor: Anchor
    scale: float  # pixels for one unit of layer width
    bar_scale: float = 0.0  # pixels for one unit of feed-forward width

    def box(self, width: int) -> float:
        """Return the width in pixels of a box for layers of this width."""
        return max(44.0, width * self.scale)

    def left(self, width: int) -> float:
        return self.centre - self.box(width) / 2

    def inside(self, width: int) -> float:
        """Return the pixels available to parts inside the box."""
        return self.box(width) - 2 * min(20.0, self.box(width) / 5)

    def port(self, width: int, y: float, *, layer: int = 0, reads: int = 0) -> Port:
        return Port(self.left(width), self.left(width) + self.box(width), y, layer, reads)

    def title(self, y: float, words: str) -> Markup:
        """Write the bold first line next to a shape."""
        return svg.text(self.words_at, y, words, font_weight="bold", text_anchor=self.anchor)

    def words(self, middle: float, words: list[str]) -> list[Markup]:
        """Write lines of words next to a shape, vertically centred on `middle`."""
        first = middle - (len(words) - 1) * svg.LINE / 2 + 4
        return svg.lines(self.words_at, first, words, fill=svg.QUIET, text_anchor=self.anchor)

    @property
    def letters(self) -> int:
        """Return how many letters fit on a line of words."""
        return int(self.words_room / svg.LETTER)

    def broken(self, words: str) -> list[str]:
        """Break words into at most six lines that fit next to the shapes."""
        return [_TIMES.sub(" \N{MULTIPLICATION SIGN} ", line) for line in wording.wrapped(words, self.letters, most=6)]


def sheet(column: Column, width: int, top: float, height: float, times: int) -> list[Markup]:
    """Draw the box of a layer; several equal layers are drawn as a pile with a badge that counts them."""
    left, size = column.left(width), column.box(width)
    shifts = range(pile_height(times), 0, -4)
    pile = [svg.box(left + shift, top + shift, size, height, rx=7) for shift in shifts]
    badge = svg.pill(left + size - 6, top, times) if times > 1 else []
    return [*pile, svg.box(left, top, size, height, rx=7, class_="layer"), *badge]


def pile_height(times: int) -> int:
    """Return how far the pile extends below its box."""
    return 4 * min(times - 1, 2)


def title(column: Column, run: LayerRun, top: float) -> Markup:
    return column.title(top + 14, f"{wording.heading(run.first, run.last)}, {wording.describe_layer(run.layer)}")


def block_box(column: Column, run: LayerRun, block: Block, top: float) -> Drawn:
    elements, ports = [], []
    y: float = top + HEADER
    bars = len(block.feed_forward) * BAR_STEP - (BAR_STEP - BAR_HEIGHT)
    parts: list[Operation | None] = [block.mixer] if block.cross is None else [block.mixer, block.cross]
    for part in [*parts, None] if block.feed_forward else parts:  # None stands for the feed-forward stack
        words = column.broken(part.describe() if part else wording.describe_feed_forward(block))
        height = TILE if part else bars
        row = max(height, len(words) * svg.LINE)
        inner = y + (row - height) / 2
        elements += [] if isinstance(part, Identity) else _residual(column, block, y, row)
        if part:
            elements += tiles(part, column.centre, inner, column.inside(block.width))
        else:
            steps = enumerate(block.feed_forward)
            elements += [bar(column, width, inner + step * BAR_STEP, BAR_HEIGHT) for step, width in steps]
        elements += column.words(y + row / 2, words)
        if part and part.memory_layers:
            ports.append(column.port(block.width, y + row / 2, reads=part.memory_layers))
        y += row + GAP
    bottom = y - GAP + 20
    ports.append(column.port(block.width, bottom - 12, layer=run.last))
    stem = svg.path(f"M{svg.point(column.centre, top)}V{number(bottom)}", svg.FAINT)
    box = [*sheet(column, block.width, top, bottom - top, run.times), title(column, run, top), stem]
    return Drawn((*box, *elements), bottom + pile_height(run.times), tuple(ports))


def tiles(operation: Operation, centre: float, top: float, room: float, height: float = TILE) -> list[Markup]:
    """Draw an operation as a bar in its colour, cut into its heads; heads that do not fit fade out."""
    look, heads = operation.SWATCH, operation.head_count
    shown = min(heads, _MOST_TILES, max(1, int(room / _THINNEST)))
    gap = min(3.0, 0.25 * room / shown)
    each = (room - gap * (shown - 1)) / shown
    lefts = [centre - room / 2 + index * (each + gap) for index in range(shown)]
    fades = [0.35 if heads > shown and index == shown - 1 else 1.0 for index in range(shown)]
    if not look.filled:
        dashes: dict[str, str | float] = {"stroke": svg.WIRE, "stroke_dasharray": "4 3", "class_": "head"}
        return [svg.rect(left, top, each, height, "none", rx=3, **dashes) for left in lefts]
    return [
        svg.rect(left, top, each, height, look.colour, rx=min(3, each / 3), fill_opacity=fade, class_="head")
        for left, fade in zip(lefts, fades, strict=True)
    ]


def _residual(column: Column, block: Block, y: float, row: float) -> list[Markup]:
    """Draw the norm of a part, and the residual connection around it."""
    inner, size = column.inside(block.width), column.box(block.width)
    norm = y - 7 if block.norm == "pre" else y + row + 10
    left, start, end = column.centre - (inner + size) / 4, y - 12, y + row + 6
    line = f"M{svg.point(column.centre, start)}H{number(left + 4)}q-4,0 -4,4V{number(end - 4)}q0,4 4,4H"
    head = tag("path", d=f"M{svg.point(column.centre - 5, end - 3)}v6l5,-3z", fill=svg.FAINT)
    strip = svg.rect(column.centre - inner / 2, norm, inner, 3, svg.STRIP, rx=1.5, class_="norm")
    return [svg.path(f"{line}{number(column.centre - 4)}", svg.FAINT, class_="residual"), head, strip]


def bar(column: Column, width: int, top: float, height: float) -> Markup:
    length = max(4.0, width * column.bar_scale)
    return svg.rect(column.centre - length / 2, top, length, height, svg.BAR, rx=2, class_="feed-forward")


def trapezoid(column: Column, funnel: Projection, top: float) -> Drawn:
    above, below = column.box(funnel.before) / 2, column.box(funnel.after) / 2
    corners = [(-above, top), (above, top), (below, top + 24), (-below, top + 24)]
    points = " ".join(svg.point(column.centre + x, y) for x, y in corners)
    shape = tag("polygon", points=points, fill=svg.FILL, stroke=svg.EDGE, stroke_linejoin="round", class_="projection")
    words = column.words(top + 12, [wording.describe_projection(funnel)])
    return Drawn((shape, *words), top + 24)


def embedding_box(column: Column, embedding: Embedding, shared: bool, top: float) -> Drawn:
    """Draw the embedding: a table of tokens, an image in patches, or frames."""
    words = [line for sentence in embedding.describe(shared=shared) for line in column.broken(sentence)]
    height = 24 + len(words) * svg.LINE
    drawn = _PICTURES[embedding.PICTURE](column, embedding, top, height)
    beside = [column.title(top + 14, "Embedding"), *column.words(top + 24 + len(words) * svg.LINE / 2, words)]
    return Drawn((*drawn.elements, *beside), max(drawn.bottom, top + height))


def head_box(column: Column, card: Card, words: str, top: float) -> Drawn:
    width = card.output_width
    box = svg.box(column.left(width), top, column.box(width), 24, fill=svg.FILL, rx=7, class_="head-box")
    return Drawn((box, *column.words(top + 12, [words])), top + 24)


def norm_strip(column: Column, width: int, top: float) -> Drawn:
    inner = column.inside(width)
    strip = svg.rect(column.centre - inner / 2, top, inner, 4, svg.STRIP, rx=2, class_="norm")
    return Drawn((strip, *column.words(top + 2, ["norm"])), top + 4)


def _table(column: Column, embedding: TokenEmbedding, top: float, height: float) -> Drawn:
    width = embedding.table_width
    left, size, count = column.left(width), column.box(width), round(height / _TABLE_STEP)
    step = height / count
    box = svg.box(left, top, size, height, rx=4, class_="embedding")
    marked = [svg.rect(left + 0.5, top + row * step, size - 1, step, svg.FILL) for row in range(1, count, 3)]
    rules = "".join(f"M{svg.point(left, top + row * step)}h{number(size)}" for row in range(1, count))
    table = [box, *marked, svg.path(rules, svg.EDGE, stroke_width=0.5)]
    if width == embedding.width:
        return Drawn(tuple(table), top + height)
    wider = trapezoid(column, Projection(width, embedding.width), top + height + 6)
    return Drawn((*table, *wider.elements), wider.bottom)


def _patches(column: Column, embedding: PatchEmbedding, top: float, _: float) -> Drawn:
    count = min(embedding.image // embedding.patch, _MOST_PATCHES)
    left, step, squares = column.centre - _GRID / 2, _GRID / count, []
    for y, x in product(range(count), repeat=2):
        # diagonal waves, so that the grid looks like a picture and not like a form
        shade = 0.35 + 0.25 * (1 + math.sin(0.55 * x + 0.8 * y)) / 2 + 0.3 * ((x * 3 + y * 5) % 7) / 7
        place = (left + x * step, top + y * step, step - 1.5, step - 1.5)
        squares.append(svg.rect(*place, svg.BAR, rx=1, fill_opacity=shade, class_="patch"))
    bar = _entry(column, embedding.width, top + _GRID + 10)
    return Drawn((*squares, bar), top + _GRID + 22)


def _frames(column: Column, embedding: FrameEmbedding, top: float, _: float) -> Drawn:
    count, height = 30, 40
    step = min(10.0, column.box(embedding.width) / count)
    left = column.centre - count * step / 2
    heights = [height * (0.25 + 0.7 * abs(math.sin(0.9 * index) * math.cos(0.23 * index))) for index in range(count)]
    columns = [
        svg.rect(left + index * step, top + (height - size) / 2, step * 0.6, size, svg.BAR, rx=1.5)
        for index, size in enumerate(heights)
    ]
    return Drawn((*columns, _entry(column, embedding.width, top + height + 10)), top + height + 22)


_PICTURES: dict[str, Callable[[Column, Any, float, float], Drawn]] = {
    "table": _table,
    "grid": _patches,
    "bars": _frames,
}


def _entry(column: Column, width: int, top: float) -> Markup:
    """Draw the linear map to the width of the first layer."""
    return svg.box(column.left(width), top, column.box(width), 12, fill=svg.FILL, rx=4, class_="embedding")
