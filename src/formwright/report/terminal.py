"""Draw a design as text: layers from top to bottom, box widths in proportion to layer widths, words next to them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from rich.color import ColorSystem
from rich.style import Style

from formwright.arch.card import Card
from formwright.arch.check import branches
from formwright.arch.layers import Block, Branch, Cell, Embedding, Junction, Stack, TokenEmbedding
from formwright.arch.ops import Operation
from formwright.report.layer_runs import (
    LayerRun,
    Projection,
    RepeatedPattern,
    bar_scale,
    fold_layers,
    inner_projection,
    widest,
)
from formwright.report.palette import Swatch, swatch, swatches_of
from formwright.report.words import (
    brief,
    describe,
    describe_between,
    describe_branch,
    describe_embedding,
    describe_feed_forward,
    describe_head,
    describe_layer,
    describe_projection,
    heading,
    headline,
    heads_of,
    shortened,
    wrapped,
)

_WALLS = (
    "\N{BOX DRAWINGS LIGHT DIAGONAL UPPER LEFT TO LOWER RIGHT}",
    "\N{BOX DRAWINGS LIGHT DIAGONAL UPPER RIGHT TO LOWER LEFT}",
)
_TEXTURES = {"tokens": "░", "patches": "▦", "frames": "▂▅▇▄▆▃"}
_COMBINE = {"add": "+", "concatenate": "&", "multiply": "x"}
_NARROWEST = 48  # a drawing is laid out for at least this many columns, and cut where there are fewer
_MARGIN = 2
_MANY = 24  # from this many boxes on, a layer gets one row instead of a box


@dataclass(frozen=True)
class Span:
    """A piece of a row in one style."""

    text: str
    swatch: Swatch | None = None
    strong: bool = False


@dataclass(frozen=True)
class TextRow:
    """One row of the drawing: a shape that starts `left` characters into its column, and words next to it."""

    left: int
    shape: tuple[Span, ...]
    words: tuple[Span, ...] = ()


@dataclass(frozen=True)
class TextPart:
    """The content of a box: rows that fill it from border to border, and words next to them."""

    rows: tuple[tuple[Span, ...], ...]
    words: str = ""
    swatch: Swatch | None = None
    strong: bool = False
    indent: int = 2  # of the lines that continue the words


@dataclass(frozen=True)
class Sheet:
    """The measures of a drawing: characters for shapes and for words, and the scales of widths."""

    area: int
    words: int
    scale: float  # characters for one unit of layer width
    bar_scale: float  # characters for one unit of feed-forward width

    def box(self, width: int) -> int:
        """Return the width of a box in characters, borders included; odd, so that it has a middle."""
        return max(9, odd(width * self.scale, self.area))

    def inside(self, width: int) -> int:
        """Return the characters between the borders, margins excluded."""
        return self.box(width) - 4

    def left(self, width: int) -> int:
        return (self.area - self.box(width)) // 2


def box(sheet: Sheet, width: int, parts: Sequence[TextPart], title: str, times: int = 1) -> list[TextRow]:
    """Draw a box around parts; several equal layers are drawn as two stacked boxes."""
    size, left = sheet.box(width), sheet.left(width)
    joint = sheet.area // 2 - left
    first, *more = wrapped(title, sheet.words, 2)
    rows = [TextRow(left, (Span(_edge("╭╮", size, joint, "┴")),), (Span(first, strong=True),))]
    for part in [*(TextPart((), line, strong=True) for line in more), *parts]:
        for inside, words in zip_longest(part.rows, worded(part, sheet.words)):
            second = "" if times == 1 else "╮" if len(rows) == 1 else "│"
            filling = inside or (Span(" " * (size - 4)),)
            rows.append(TextRow(left, (Span("│ "), *filling, Span(f" │{second}")), words or ()))
    if times == 1:
        return [*rows, TextRow(left, (Span(_edge("╰╯", size, joint, "┬")),))]
    upper, lower = _edge("╰╯", size) + "│", _edge("╰╯", size, joint - 1, "┬")
    return [*rows, TextRow(left, (Span(upper),)), TextRow(left + 1, (Span(lower),))]


def tiles(swatch: Swatch, count: int, room: int) -> tuple[Span, ...]:
    """Fill the room with a bar in the operation's colour, cut into `count` heads as far as they fit."""
    shown = min(count, (room + 1) // 2)
    each = (room - (shown - 1)) // shown
    heads = [swatch.glyph * each] * shown
    if shown < count:
        heads[-1] = "…"
    spans = [span for head in heads for span in (Span(head, swatch), Span(" "))]
    return padded(spans[:-1], room)


def padded(spans: Sequence[Span], room: int) -> tuple[Span, ...]:
    """Centre spans."""
    spare = room - sum(len(span.text) for span in spans)
    return (Span(" " * (spare // 2)), *spans, Span(" " * (spare - spare // 2)))


def bar(sheet: Sheet, width: int, room: int) -> tuple[Span, ...]:
    return (Span(("━" * odd(width * sheet.bar_scale, room)).center(room)),)


def odd(length: float, most: int) -> int:
    """Round a length to an odd number of characters, so that it has a middle; at most the odd number `most`."""
    return min(most, max(1, 2 * round((length - 1) / 2) + 1))


def funnel_row(sheet: Sheet, funnel: Projection, words: str) -> TextRow:
    """Draw a projection as two slanted walls around the connecting line."""
    outer, inner = sheet.left(max(funnel.before, funnel.after)), sheet.left(min(funnel.before, funnel.after))
    left = min((outer + inner) // 2, sheet.area // 2 - 1)
    falling, rising = _WALLS if funnel.before > funnel.after else _WALLS[::-1]
    gap = " " * (sheet.area // 2 - left - 1)
    shape = f"{falling}{gap}│{gap}{rising}"
    return TextRow(left, (Span(shape),), (Span(words),))


def worded(part: TextPart, room: int) -> list[tuple[Span, ...]]:
    """Break the words of a part into rows that start with its glyph."""
    sentences = part.words.split("\n")
    if part.swatch is None:
        lines = [line for sentence in sentences for line in wrapped(sentence, room, part.indent)]
        return [(Span(line, strong=part.strong),) for line in lines]
    lines = [line for sentence in sentences for line in wrapped(sentence, room - 2, part.indent)]
    glyphs = [Span(part.swatch.glyph, part.swatch), *[Span(" ")] * (len(lines) - 1)]
    return [(glyph, Span(f" {line}")) for glyph, line in zip(glyphs, lines, strict=True)]


def _edge(ends: str, size: int, joint: int | None = None, mark: str = "") -> str:
    line = list(ends[0] + "─" * (size - 2) + ends[1])
    if joint is not None:
        line[joint] = mark
    return "".join(line)


def embedding_rows(sheet: Sheet, embedding: Embedding, shared: bool) -> list[TextRow]:
    factorised = embedding.factorised if isinstance(embedding, TokenEmbedding) else None
    table = factorised or embedding.width
    room = sheet.inside(table)
    texture = (Span((_TEXTURES[embedding.TYPE] * room)[:room]),)
    first, second = describe_embedding(embedding, shared=shared)
    rows = box(sheet, table, [TextPart((texture,), first), TextPart((), second)], "Embedding")
    rows[0] = TextRow(rows[0].left, (Span(rows[0].shape[0].text.replace("┴", "─")),), rows[0].words)
    return rows + projection_rows(sheet, Projection(table, embedding.width))


def projection_rows(sheet: Sheet, funnel: Projection) -> list[TextRow]:
    """Draw a projection; nothing between equal widths."""
    if funnel.before == funnel.after:
        return []
    return [funnel_row(sheet, funnel, describe_projection(funnel))]


def run_rows(sheet: Sheet, run: LayerRun) -> list[TextRow]:
    """Draw the box of a run of equal layers."""
    times = f" x {run.times}" if run.times > 1 else ""
    title = f"{heading(run.first, run.last)}{times}, {describe_layer(run.layer)}"
    layer = run.layer
    parts = _block_parts(sheet, layer) if isinstance(layer, Block) else _cell_parts(sheet, layer)
    if run.times > 1 and (between := inner_projection([run])):
        parts.append(TextPart((), describe_between(between)))
    return box(sheet, run.layer.width, parts, title, run.times)


def run_row(sheet: Sheet, run: LayerRun) -> TextRow:
    """Draw a layer in one row, for very deep designs."""
    layer = run.layer
    mixer = layer.mixer if isinstance(layer, Block) else layer.junctions[-1].left.operation
    filling = tiles(swatch(mixer), heads_of(mixer), sheet.inside(layer.width))
    times = f" x {run.times}" if run.times > 1 else ""
    place = f"{run.first}{times}".ljust(8) + f"{layer.width:>5}  "
    words = shortened(brief(layer), sheet.words - len(place) - 2)
    shape = (Span("│ "), *filling, Span(" │"))
    glyph = Span(swatch(mixer).glyph, swatch(mixer))
    return TextRow(sheet.left(layer.width), shape, (Span(place), glyph, Span(f" {words}")))


def run_row_title() -> TextRow:
    """Write the column titles of one-row layers."""
    return TextRow(0, (), (Span(f"{'layer':<8}{'width':>5}  feed-forward, mixer", strong=True),))


def head_rows(sheet: Sheet, card: Card) -> list[TextRow]:
    """Draw the pooler and the classifier."""
    rows = []
    for words in describe_head(card):
        filling = (Span("░" * sheet.inside(card.output_width)),)
        rows += box(sheet, card.output_width, [TextPart((filling,), words)], "Head")
    return rows


def norm_row(sheet: Sheet, width: int) -> TextRow:
    half = sheet.box(width) // 4
    return TextRow(sheet.area // 2 - half, (Span("╌" * half + "┼" + "╌" * half),), (Span("norm"),))


def _block_parts(sheet: Sheet, block: Block) -> list[TextPart]:
    room = sheet.inside(block.width)
    parts = [_operation_part(block.mixer, room)]
    if block.cross is not None:
        parts.append(_operation_part(block.cross, room))
    if block.feed_forward:
        bars = tuple(bar(sheet, width, room) for width in block.feed_forward)
        parts.append(TextPart(bars, describe_feed_forward(block)))
    return parts


def _operation_part(operation: Operation, room: int) -> TextPart:
    return TextPart((tiles(swatch(operation), heads_of(operation), room),), describe(operation), swatch(operation))


def _cell_parts(sheet: Sheet, cell: Cell) -> list[TextPart]:
    room = sheet.inside(cell.width)
    widest = max(branch.width for _, branch in branches(cell))
    return [_junction_part(index, junction, room, widest) for index, junction in enumerate(cell.junctions, start=1)]


def _junction_part(index: int, junction: Junction, room: int, widest: int) -> TextPart:
    left, right = junction.left, junction.right
    half = (room - 3) // 2
    if right is None:
        alone = padded(_branch(left, half, widest), room)
        return TextPart((alone,), f"{index}: {describe_branch(left)}", indent=7)
    pair = (*_branch(left, half, widest), Span(f" {_COMBINE[junction.combine]} "), *_branch(right, half, widest))
    words = f"{index}: {describe_branch(left)}\n   | {junction.combine} | {describe_branch(right)}"
    return TextPart((pair,), words, indent=7)


def _branch(branch: Branch, room: int, widest: int) -> tuple[Span, ...]:
    length = max(1, round(room * branch.width / widest))
    return padded(tiles(swatch(branch.operation), 1, length), room)


def draw_text(card: Card, *, colour: bool = False, columns: int = 80) -> str:
    """Draw a design for a terminal; `colour` uses ANSI escapes for 256 colours."""
    sheet = _sheet(card, max(columns, _NARROWEST))
    lines: list[tuple[Span, ...]] = [(Span(headline(card), strong=True),), ()]
    for stack in card.stacks:
        if len(card.stacks) > 1:
            lines += [(Span("Encoder" if stack is card.encoder else "Decoder", strong=True),), ()]
        lines += [_line(sheet, row) for row in _stack_rows(sheet, card, stack)]
        lines.append(())
    lines += _legend(card, columns)
    return "\n".join(_painted(line, colour, columns) for line in lines) + "\n"


def _sheet(card: Card, columns: int) -> Sheet:
    area = (columns - _MARGIN) * 2 // 5
    area -= 1 - area % 2  # odd, so that boxes have a middle
    sheet = Sheet(area, columns - _MARGIN - area - 3, area / widest(card), 0)
    return replace(sheet, bar_scale=bar_scale(card, sheet.inside))


def _stack_rows(sheet: Sheet, card: Card, stack: Stack) -> Iterator[TextRow]:
    yield from embedding_rows(sheet, stack.embedding, card.share_embedding and stack is card.decoder)
    repeats = fold_layers(stack.layers)
    many = sum(len(repeat.runs) for repeat in repeats) >= _MANY
    if many:
        yield run_row_title()
    before = stack.embedding.width
    for repeat in repeats:
        yield from [] if many else projection_rows(sheet, Projection(before, repeat.runs[0].layer.width))
        yield from _framed(sheet, repeat, _run_rows(sheet, repeat, many))
        before = repeat.runs[-1].layer.output_width
    if stack.final_norm:
        yield norm_row(sheet, stack.output_width)
    if stack is card.stacks[-1]:
        yield from head_rows(sheet, card)


def _run_rows(sheet: Sheet, repeat: RepeatedPattern, many: bool) -> Iterator[TextRow]:
    before = repeat.runs[0].layer.width
    for run in repeat.runs:
        if many:
            yield run_row(sheet, run)
        else:
            yield from projection_rows(sheet, Projection(before, run.layer.width))
            yield from run_rows(sheet, run)
        before = run.layer.output_width


def _framed(sheet: Sheet, repeat: RepeatedPattern, rows: Iterator[TextRow]) -> Iterator[TextRow]:
    """Frame the rows of a repeated pattern."""
    if repeat.times == 1:
        yield from rows
        return
    between = inner_projection(repeat.runs)
    projected = f", {describe_between(between)}" if between else ""
    words = f"{heading(repeat.first, repeat.last)}, this pattern x {repeat.times}{projected}"
    dashes = "╌" * (sheet.area // 2 - 1)
    first, *more = wrapped(words, sheet.words, 2)
    yield TextRow(0, (Span(f"┌{dashes}│{dashes}┐"),), (Span(first, strong=True),))
    yield from (TextRow(sheet.area // 2, (Span("│"),), (Span(line, strong=True),)) for line in more)
    yield from rows
    yield TextRow(0, (Span(f"└{dashes}│{dashes}┘"),))


def _line(sheet: Sheet, row: TextRow) -> tuple[Span, ...]:
    used = row.left + _length(row.shape)
    gap = Span(" " * (sheet.area + 3 - used))
    return (Span(" " * (_MARGIN + row.left)), *row.shape, *((gap, *row.words) if row.words else ()))


def _legend(card: Card, columns: int) -> Iterator[tuple[Span, ...]]:
    line: tuple[Span, ...] = ()
    for one in swatches_of(card):
        entry = (Span("  "), Span(f" {one.glyph} ", one), Span(f" {one.name}"))
        if line and _length(line + entry) > columns:
            yield line
            line = ()
        line += entry
    yield line


def _length(line: tuple[Span, ...]) -> int:
    return sum(len(span.text) for span in line)


def _painted(line: tuple[Span, ...], colour: bool, columns: int) -> str:
    room = columns
    text = ""
    for span in line:
        piece = shortened(span.text, room)
        room -= len(piece)
        text += _style(span).render(piece, color_system=ColorSystem.EIGHT_BIT) if colour else piece
    return text.rstrip()


def _style(span: Span) -> Style:
    if span.swatch is None or not span.swatch.filled:
        return Style(bold=span.strong)
    return Style(color=span.swatch.ink, bgcolor=span.swatch.colour)
