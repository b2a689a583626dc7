"""One stack from top to bottom: embedding, layers, projections, and what stands at the end."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from formwright.arch.card import Card
from formwright.arch.check import operations
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import CrossAttention
from formwright.report.fold import Repeat, Run, fold, funnel, inner_funnel
from formwright.report.svg_canvas import EDGE, SHEET, WIRE, Drawn, Port, arrow, pill, rect
from formwright.report.svg_cells import cell_box
from formwright.report.svg_column import Column
from formwright.report.svg_ends import embedding_box, head_box, norm_strip
from formwright.report.svg_layers import bar, block_box, tiles, trapezoid
from formwright.report.words import brief, describe_between, describe_head, heading
from formwright.report.wrap import shortened

_ARROW, _FRAME, _ROW = 22, 14, 19
_MANY = 24  # from this many boxes on, a layer gets one row instead of a box


class _Pen:
    """Draw one thing below the other."""

    def __init__(self, column: Column, top: float) -> None:
        self.column, self.y = column, top
        self.elements: list[str] = []
        self.ports: list[Port] = []

    def put(self, draw: Callable[[float], Drawn], gap: float = _ARROW) -> None:
        """Draw a thing below the last one, with an arrow to it where the gap has room for one."""
        if gap >= _ARROW:
            self.elements += arrow(self.column.centre, self.y + 2, self.y + gap - 2)
        drawn = draw(self.y + gap)
        self.elements += drawn.elements
        self.ports += drawn.ports
        self.y = drawn.bottom

    def project(self, before: int, after: int) -> None:
        """Draw a projection where the width changes."""
        between = funnel(before, after)
        if between is not None:
            self.put(partial(trapezoid, self.column, between), 8)


def draw_stack(column: Column, card: Card, stack: Stack, top: float) -> Drawn:
    """Draw a stack below the height `top`."""
    pen = _Pen(column, top)
    pen.put(partial(embedding_box, column, stack.embedding, card.share_embedding and stack is card.decoder), 0)
    repeats = fold(stack.layers)
    many = sum(len(repeat.runs) for repeat in repeats) >= _MANY
    before = stack.embedding.width
    for repeat in repeats:
        if not many:
            pen.project(before, repeat.runs[0].layer.width)
        _put_repeat(pen, repeat, many)
        before = repeat.runs[-1].layer.output_width
    if stack.final_norm:
        pen.put(partial(norm_strip, column, stack.output_width))
    for words in describe_head(card) if stack is card.stacks[-1] else ():
        pen.put(partial(head_box, column, card, words))
    return Drawn(tuple(pen.elements), pen.y, tuple(pen.ports))


def _put_repeat(pen: _Pen, repeat: Repeat, many: bool) -> None:
    if repeat.times == 1:
        _put_runs(pen, repeat.runs, many)
        return
    top = pen.y + _ARROW
    inner = _Pen(pen.column, top)
    inner.put(partial(_repeat_title, pen.column, repeat), 0)
    _put_runs(inner, repeat.runs, many, first_gap=12)
    size = pen.column.room + 2 * _FRAME
    left, bottom = pen.column.centre - size / 2, inner.y + _FRAME
    frame = rect(left, top, size, bottom - top, "none", stroke=WIRE, rx=10, stroke_dasharray="5 4", class_="pattern")
    badge = pill(left + size - 30, top, repeat.times)
    pen.elements += [*arrow(pen.column.centre, pen.y + 2, top - 2), frame, *inner.elements, *badge]
    later = (repeat.times - 1) * repeat.period
    pen.ports += [replace(port, layer=port.layer + later) if port.layer else port for port in inner.ports]
    pen.y = bottom


def _repeat_title(column: Column, repeat: Repeat, top: float) -> Drawn:
    words = f"{heading(repeat.first, repeat.last)}, a pattern of {repeat.period}"
    between = inner_funnel(repeat.runs)
    more = [describe_between(between)] if between else []
    elements = [column.title(top + 4, words), *column.words(top + 18, more)]
    return Drawn(tuple(elements), top + 10 + 14 * len(more))


def _put_runs(pen: _Pen, runs: tuple[Run, ...], many: bool, first_gap: float = _ARROW) -> None:
    before, gap = runs[0].layer.width, first_gap
    for run in runs:
        if many:
            pen.put(partial(_run_row, pen.column, run), 5)
            continue
        pen.project(before, run.layer.width)
        pen.put(partial(_run_box, pen.column, run), gap)
        before, gap = run.layer.output_width, _ARROW


def _run_box(column: Column, run: Run, top: float) -> Drawn:
    layer = run.layer
    return block_box(column, run, layer, top) if isinstance(layer, Block) else cell_box(column, run, layer, top)


def _run_row(column: Column, run: Run, top: float) -> Drawn:
    """Draw a layer in one row, for designs with very many of them."""
    layer = run.layer
    mixer = layer.mixer if isinstance(layer, Block) else layer.junctions[-1].left.operation
    box = rect(column.left(layer.width), top, column.box(layer.width), _ROW, SHEET, stroke=EDGE, rx=4, class_="layer")
    heads = tiles(mixer, column.centre, top + 4, column.inside(layer.width), 7)
    widest = max(layer.feed_forward, default=0) if isinstance(layer, Block) else 0
    bars = [bar(column, widest, top + _ROW - 6, 2.5)] if widest else []
    words = shortened(_row_words(run), column.letters)
    ports = [column.port(layer.width, top + _ROW / 2, layer=run.last)]
    reads = {operation.layers for _, operation in operations(layer) if isinstance(operation, CrossAttention)}
    ports += [column.port(layer.width, top + _ROW / 2, reads=count) for count in reads]
    return Drawn((box, *heads, *bars, *column.words(top + _ROW / 2, [words])), top + _ROW, tuple(ports))


def _row_words(run: Run) -> str:
    times = f" \N{MULTIPLICATION SIGN} {run.times}" if run.times > 1 else ""
    return f"{run.first}{times}: {run.layer.width} wide, {brief(run.layer)}"
