"""What stands before the first layer and after the last: embeddings, final norm, pooler and classes."""

import math

from formwright.arch.card import Card
from formwright.arch.layers import Embedding, FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.report.fold import Funnel
from formwright.report.svg_canvas import BAR, EDGE, FILL, LINE, SHEET, STRIP, Drawn, path, point, rect
from formwright.report.svg_column import Column
from formwright.report.svg_layers import trapezoid
from formwright.report.words import describe_embedding

_GRID, _MOST_PATCHES = 98, 14
_TABLE_ROWS, _TABLE_STEP = 4, 11


def embedding_box(column: Column, embedding: Embedding, shared: bool, top: float) -> Drawn:
    """Draw what enters a stack: a table of tokens, an image in patches, or frames."""
    match embedding:
        case TokenEmbedding():
            drawn = _table(column, embedding, top)
        case PatchEmbedding():
            drawn = _patches(column, embedding, top)
        case FrameEmbedding():
            drawn = _frames(column, embedding, top)
    words = [line for sentence in describe_embedding(embedding, shared=shared) for line in column.broken(sentence)]
    middle = top + 24 + len(words) * LINE / 2
    bottom = max(drawn.bottom, top + 24 + len(words) * LINE)
    return Drawn((*drawn.elements, column.title(top + 14, "Embedding"), *column.words(middle, words)), bottom)


def head_box(column: Column, card: Card, words: str, top: float) -> Drawn:
    """Draw a pooler or a classifier."""
    width = card.output_width
    box = rect(column.left(width), top, column.box(width), 24, FILL, stroke=EDGE, rx=7, class_="head-box")
    return Drawn((box, *column.words(top + 12, [words])), top + 24)


def norm_strip(column: Column, width: int, top: float) -> Drawn:
    """Draw the norm that stands above the last layer."""
    inner = column.inside(width)
    strip = rect(column.centre - inner / 2, top + 5, inner, 4, STRIP, rx=2)
    return Drawn((strip, *column.words(top + 7, ["norm"])), top + 14)


def _table(column: Column, embedding: TokenEmbedding, top: float) -> Drawn:
    width = embedding.table_width
    left, size, height = column.left(width), column.box(width), _TABLE_ROWS * _TABLE_STEP
    box = rect(left, top, size, height, SHEET, stroke=EDGE, rx=4, class_="embedding")
    marked = rect(left + 1, top + _TABLE_STEP, size - 2, _TABLE_STEP, FILL)
    rules = [
        path(f"M{point(left, top + row * _TABLE_STEP)}h{size:.1f}", EDGE, stroke_width=0.6)
        for row in range(1, _TABLE_ROWS)
    ]
    elements, bottom = (box, marked, *rules), top + height
    if embedding.factorised is None or embedding.factorised == embedding.width:
        return Drawn(elements, bottom)
    widened = trapezoid(column, Funnel(width, embedding.width), max(bottom + 4, top + 30 + 3 * LINE))
    return Drawn(elements + widened.elements, widened.bottom)


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
