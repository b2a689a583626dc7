"""Draw a design as a self-contained SVG: no scripts, no external fonts, only shapes and words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import CrossAttention, Swatch
from formwright.report import svg_canvas as svg
from formwright.report.layer_runs import (
    MANY,
    LayerRun,
    Projection,
    RepeatedPattern,
    bar_scale,
    fold_layers,
    inner_projection,
    widest,
)
from formwright.report.markup import Markup, number, tag
from formwright.report.palette import swatches_of
from formwright.report.svg_canvas import Drawn, Port
from formwright.report.svg_cells import cell_box
from formwright.report.svg_layers import Column, bar, block_box, embedding_box, head_box, norm_strip, tiles, trapezoid
from formwright.report.words import brief, describe_between, describe_head, heading, headline, shortened, wrapped

_RAIL_STEP, _RAIL_SIDE = 11, 30
_CROSS_COLOUR = CrossAttention.SWATCH.colour
_ARROW, _FRAME, _ROW = 22, 14, 19
_MARGIN, _GAP = 34, 30


def draw_rails(left: float, below: Sequence[Port], above: Sequence[Port], depth: int) -> list[Markup]:
    """Draw a rail for each number of encoder layers that is read.

    The space between the columns starts at `left`; `below` and `above` are the ports of the encoder and the decoder,
    and `depth` counts the encoder's layers.
    """
    elements = []
    for rank, reads in enumerate(sorted({port.reads for port in above if port.reads})):
        sources = [port for port in below if port.layer > depth - reads]
        readers = [port for port in above if port.reads == reads]
        elements += _rail(left + _RAIL_SIDE + (rank + 0.5) * _RAIL_STEP, sources, readers, 5 * rank)
    return elements


def _rail(x: float, sources: list[Port], readers: list[Port], lift: float) -> list[Markup]:
    """Draw one rail; `lift` separates rails that leave the same box."""
    starts = [(port.right, port.y - lift) for port in sources]
    ends = [(port.left, port.y) for port in readers]
    heights = [y for _, y in starts + ends]
    data = [f"M{svg.point(x, min(heights))}V{number(max(heights))}"]
    data += [f"M{svg.point(start, y)}H{number(x)}" for start, y in starts]
    data += [f"M{svg.point(x, y)}H{number(end - 5)}" for end, y in ends]
    heads = [tag("path", d=f"M{svg.point(end - 7, y - 4)}v8l7,-4z", fill=_CROSS_COLOUR) for end, y in ends]
    dots = [tag("circle", cx=x, cy=y, r=2.6, fill=_CROSS_COLOUR) for _, y in starts + ends]
    return [svg.path("".join(data), _CROSS_COLOUR, stroke_width=1.6, class_="cross"), *heads, *dots]


class _Pen:
    """Draw shapes one below the other."""

    def __init__(self, column: Column, top: float) -> None:
        self.column, self.y = column, top
        self.elements: list[Markup] = []
        self.ports: list[Port] = []

    def put(self, draw: Callable[[float], Drawn], gap: float = _ARROW) -> None:
        """Draw a shape below the last one, with an arrow to it if the gap has room for one."""
        if gap >= _ARROW:
            self.elements += svg.arrow(self.column.centre, self.y + 2, self.y + gap - 2)
        drawn = draw(self.y + gap)
        self.elements += drawn.elements
        self.ports += drawn.ports
        self.y = drawn.bottom

    def project(self, before: int, after: int) -> None:
        """Draw a projection if the width changes."""
        if before != after:
            self.put(partial(trapezoid, self.column, Projection(before, after)), 8)


def draw_stack(column: Column, card: Card, stack: Stack, top: float) -> Drawn:
    pen = _Pen(column, top)
    pen.put(partial(embedding_box, column, stack.embedding, card.share_embedding and stack is card.decoder), 0)
    repeats = fold_layers(stack.layers)
    many = sum(len(repeat.runs) for repeat in repeats) >= MANY
    before = stack.embedding.width
    for repeat in repeats:
        if not many:
            pen.project(before, repeat.runs[0].layer.width)
        _put_repeat(pen, repeat, many)
        before = repeat.runs[-1].layer.output_width
    pen.project(before, stack.output_width)
    if stack.final_norm:
        pen.put(partial(norm_strip, column, stack.output_width))
    for words in describe_head(card) if stack is card.stacks[-1] else ():
        pen.put(partial(head_box, column, card, words))
    return Drawn(tuple(pen.elements), pen.y, tuple(pen.ports))


def _put_repeat(pen: _Pen, repeat: RepeatedPattern, many: bool) -> None:
    if repeat.times == 1:
        _put_runs(pen, repeat.runs, many)
        return
    top = pen.y + _ARROW
    inner = _Pen(pen.column, top)
    inner.put(partial(_repeat_title, pen.column, repeat), 0)
    _put_runs(inner, repeat.runs, many, first_gap=12)
    size = pen.column.room + 2 * _FRAME
    left, bottom = pen.column.centre - size / 2, inner.y + _FRAME
    frame = svg.rect(
        left, top, size, bottom - top, "none", stroke=svg.WIRE, rx=10, stroke_dasharray="5 4", class_="pattern"
    )
    badge = svg.pill(left + size - 30, top, repeat.times)
    pen.elements += [*svg.arrow(pen.column.centre, pen.y + 2, top - 2), frame, *inner.elements, *badge]
    later = (repeat.times - 1) * repeat.period
    pen.ports += [replace(port, layer=port.layer + later) if port.layer else port for port in inner.ports]
    pen.y = bottom


def _repeat_title(column: Column, repeat: RepeatedPattern, top: float) -> Drawn:
    words = f"{heading(repeat.first, repeat.last)}, a pattern of {repeat.period}"
    between = inner_projection(repeat.runs)
    more = [describe_between(between)] if between else []
    elements = [column.title(top + 4, words), *column.words(top + 18, more)]
    return Drawn(tuple(elements), top + 10 + 14 * len(more))


def _put_runs(pen: _Pen, runs: tuple[LayerRun, ...], many: bool, first_gap: float = _ARROW) -> None:
    before, gap = runs[0].layer.width, first_gap
    for run in runs:
        if many:
            pen.put(partial(_run_row, pen.column, run), 5)
            continue
        pen.project(before, run.layer.width)
        draw = block_box if isinstance(run.layer, Block) else cell_box
        pen.put(partial(draw, pen.column, run, run.layer), gap)  # type: ignore[arg-type]
        before, gap = run.layer.output_width, _ARROW


def _run_row(column: Column, run: LayerRun, top: float) -> Drawn:
    """Draw a layer in one row, for very deep designs."""
    layer = run.layer
    mixer = layer.mixer if isinstance(layer, Block) else layer.junctions[-1].left.operation
    box = svg.box(column.left(layer.width), top, column.box(layer.width), _ROW, rx=4, class_="layer")
    heads = tiles(mixer, column.centre, top + 4, column.inside(layer.width), 7)
    widest = max(layer.feed_forward, default=0) if isinstance(layer, Block) else 0
    bars = [bar(column, widest, top + _ROW - 6, 2.5)] if widest else []
    times = f" \N{MULTIPLICATION SIGN} {run.times}" if run.times > 1 else ""
    words = shortened(f"{run.first}{times}: {layer.width} wide, {brief(layer)}", column.letters)
    ports = [column.port(layer.width, top + _ROW / 2, layer=run.last)]
    reads = {operation.memory_layers for _, operation in layer.operations if operation.memory_layers}
    ports += [column.port(layer.width, top + _ROW / 2, reads=count) for count in reads]
    return Drawn((box, *heads, *bars, *column.words(top + _ROW / 2, [words])), top + _ROW, tuple(ports))


def draw_svg(card: Card, title: str = "", costs: Mapping[str, str] | None = None) -> Markup:
    """Draw a design; `costs` are names and values for the footer."""
    columns, width = _columns(card)
    header = _header(card, title, width)
    below = header.bottom + (26 if len(columns) > 1 else 0)
    stacks = [draw_stack(column, card, stack, below) for column, stack in zip(columns, card.stacks, strict=True)]
    elements = [*header.elements]
    if len(stacks) == 2:
        for column, name in zip(columns, ("Encoder", "Decoder"), strict=True):
            look: dict[str, str | float] = {"font_size": 14, "font_weight": "bold", "text_anchor": "middle"}
            elements.append(svg.text(column.centre, header.bottom + 8, name, **look))
        between = columns[0].centre + columns[0].room / 2
        elements += draw_rails(between, stacks[0].ports, stacks[1].ports, len(card.stacks[0].layers))
    elements += [item for stack in stacks for item in stack.elements]
    shapes = {"feed-forward": svg.BAR, "norm": svg.STRIP}  # which have no words next to them
    drawn = [name for name in shapes if any(f'class="{name}"' in item for item in elements)]
    entries = [*swatches_of(card), *(Swatch(name, shapes[name], "") for name in drawn)]
    legend = _legend(entries, max(stack.bottom for stack in stacks) + 36, width)
    words = "  \N{MIDDLE DOT}  ".join(f"{name}: {value}" for name, value in (costs or {}).items())
    footer = wrapped(words, int((width - 2 * _MARGIN) / svg.LETTER))
    elements += [*legend.elements, *svg.lines(_MARGIN, legend.bottom + 20, footer, fill=svg.QUIET)]
    bottom = legend.bottom + (8 + svg.LINE * len(footer) if footer else 0)
    return svg.page(width, bottom + 24, title or headline(card), elements)


def _columns(card: Card) -> tuple[list[Column], float]:
    """Lay out one column, or two with their words on the outer sides."""
    if len(card.stacks) == 1:
        room, words = 360.0, 330.0
        left = _MARGIN + room + _GAP
        columns = [Column(_MARGIN + room / 2, room, left, words, "start", 1)]
        width = left + words + _MARGIN
    else:
        room, words = 250.0, 270.0
        inner = _MARGIN + words + _GAP
        found = (operation for layer in card.stacks[1].layers for _, operation in layer.operations)
        kinds = {operation.memory_layers for operation in found if operation.memory_layers}
        between = 2 * room + 2 * _RAIL_SIDE + _RAIL_STEP * max(len(kinds), 1)
        ends = inner + room / 2, inner + between - room / 2
        columns = [
            Column(ends[0], room, inner - _GAP, words, "end", 1),
            Column(ends[1], room, inner + between + _GAP, words, "start", 1),
        ]
        width = inner + between + _GAP + words + _MARGIN
    # one scale for all widths, and one for all bars so that the fullest box just holds its bars
    sized = [replace(column, scale=column.room / widest(card)) for column in columns]
    return [replace(column, bar_scale=bar_scale(card, column.inside)) for column in sized], width


def _header(card: Card, title: str, width: float) -> Drawn:
    elements, y = [], _MARGIN + 12.0
    for line in wrapped(title, int((width - 2 * _MARGIN) / svg.LETTER * 0.6), most=3):
        elements.append(svg.text(_MARGIN, y, line, font_size=20, font_weight="bold"))
        y += 22
    elements.append(svg.text(_MARGIN, y, headline(card), fill=svg.QUIET, font_size=13))
    return Drawn(tuple(elements), y + 24)


def _legend(entries: list[Swatch], top: float, width: float) -> Drawn:
    elements = [svg.path(f"M{svg.point(_MARGIN, top - 18)}H{width - _MARGIN:.1f}", svg.RULE)]
    x, y = float(_MARGIN), top
    for entry in entries:
        room = 24 + svg.LETTER * len(entry.name) + 16
        if x + room > width - _MARGIN and x > _MARGIN:
            x, y = _MARGIN, y + 22
        dashes: dict[str, str | float] = {} if entry.filled else {"stroke": svg.WIRE, "stroke_dasharray": "3 2"}
        elements.append(svg.rect(x, y, 14, 14, entry.colour if entry.filled else "none", rx=3, **dashes))
        elements.append(svg.text(x + 20, y + 11.5, entry.name))
        x += room
    return Drawn(tuple(elements), y + 18)
