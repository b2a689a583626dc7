"""What stands before the first layer and after the last: embeddings, final norm, pooler and classes."""

import math

from formwright.arch.card import Card
from formwright.arch.layers import Embedding, FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.report.fold import funnel
from formwright.report.svg_canvas import BAR, EDGE, FILL, LINE, SHEET, STRIP, Drawn, number, path, point, rect
from formwright.report.svg_column import Column
from formwright.report.svg_layers import trapezoid
from formwright.report.words import describe_embedding

_GRID, _MOST_PATCHES = 98, 14
_TABLE_STEP = 11


def embedding_box(column: Column, embedding: Embedding, shared: bool, top: float) -> Drawn:
    """Draw what enters a stack: a table of tokens, an image in patches, or frames."""
    words = [line for sentence in describe_embedding(embedding, shared=shared) for line in column.broken(sentence)]
    height = 24 + len(words) * LINE
    match embedding:
        case TokenEmbedding():
            drawn = _table(column, embedding, top, height)
        case PatchEmbedding():
            drawn = _patches(column, embedding, top)
        case FrameEmbedding():
            drawn = _frames(column, embedding, top)
    beside = [column.title(top + 14, "Embedding"), *column.words(top + 24 + len(words) * LINE / 2, words)]
    return Drawn((*drawn.elements, *beside), max(drawn.bottom, top + height))


def head_box(column: Column, card: Card, words: str, top: float) -> Drawn:
    """Draw a pooler or a classifier."""
    width = card.output_width
    box = rect(column.left(width), top, column.box(width), 24, FILL, stroke=EDGE, rx=7, class_="head-box")
    return Drawn((box, *column.words(top + 12, [words])), top + 24)


def norm_strip(column: Column, width: int, top: float) -> Drawn:
    """Draw the norm that stands above the last layer."""
    inner = column.inside(width)
    strip = rect(column.centre - inner / 2, top, inner, 4, STRIP, rx=2, class_="norm")
    return Drawn((strip, *column.words(top + 2, ["norm"])), top + 4)


def _table(column: Column, embedding: TokenEmbedding, top: float, height: float) -> Drawn:
    width = embedding.table_width
    left, size, count = column.left(width), column.box(width), round(height / _TABLE_STEP)
    step = height / count
    box = rect(left, top, size, height, SHEET, stroke=EDGE, rx=4, class_="embedding")
    marked = [rect(left + 0.5, top + row * step, size - 1, step, FILL) for row in range(1, count, 3)]
    rules = "".join(f"M{point(left, top + row * step)}h{number(size)}" for row in range(1, count))
    table = [box, *marked, path(rules, EDGE, stroke_width=0.5)]
    widening = funnel(width, embedding.width)
    if widening is None:
        return Drawn(tuple(table), top + height)
    wider = trapezoid(column, widening, top + height + 6)
    return Drawn((*table, *wider.elements), wider.bottom)


def _patches(column: Column, embedding: PatchEmbedding, top: float) -> Drawn:
    count = min(embedding.image // embedding.patch, _MOST_PATCHES)
    step = _GRID / count
    left = column.centre - _GRID / 2
    squares = [
        # shades in diagonal waves, so that the grid looks like a picture and not like a form
        rect(
            left + x * step,
            top + y * step,
            step - 1.5,
            step - 1.5,
            BAR,
            rx=1,
            fill_opacity=_shade(x, y),
            class_="patch",
        )
        for y in range(count)
        for x in range(count)
    ]
    bar = _entry(column, embedding.width, top + _GRID + 10)
    return Drawn((*squares, bar), top + _GRID + 22)


def _frames(column: Column, embedding: FrameEmbedding, top: float) -> Drawn:
    count, height = 30, 40
    step = min(10.0, column.box(embedding.width) / count)
    left = column.centre - count * step / 2
    heights = [height * (0.25 + 0.7 * abs(math.sin(0.9 * index) * math.cos(0.23 * index))) for index in range(count)]
    columns = [
        rect(left + index * step, top + (height - size) / 2, step * 0.6, size, BAR, rx=1.5)
        for index, size in enumerate(heights)
    ]
    return Drawn((*columns, _entry(column, embedding.width, top + height + 10)), top + height + 22)


def _entry(column: Column, width: int, top: float) -> str:
    """Draw the linear map into the width of the first layer."""
    return rect(column.left(width), top, column.box(width), 12, FILL, stroke=EDGE, rx=4, class_="embedding")


def _shade(x: int, y: int) -> float:
    return 0.35 + 0.25 * (1 + math.sin(0.55 * x + 0.8 * y)) / 2 + 0.3 * ((x * 3 + y * 5) % 7) / 7
