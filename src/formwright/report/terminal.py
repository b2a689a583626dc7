"""Draw a design as text: layers from top to bottom, box widths in proportion to layer widths, words next to them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from rich.color import ColorSystem
from rich.style import Style

from formwright.arch.card import Card
from formwright.arch.embeddings import Embedding, TokenEmbedding
from formwright.arch.layers import Block, Branch, Junction, Stack
from formwright.arch.ops import Operation, Swatch
from formwright.report import words as wording
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
from formwright.report.palette import ink, swatches_of

_WALLS = (
    "\N{BOX DRAWINGS LIGHT DIAGONAL UPPER LEFT TO LOWER RIGHT}",
    "\N{BOX DRAWINGS LIGHT DIAGONAL UPPER RIGHT TO LOWER LEFT}",
)
_TEXTURES = {"tokens": "░", "patches": "▦", "frames": "▂▅▇▄▆▃"}
_COMBINE = {"add": "+", "concatenate": "&", "multiply": "x"}
_NARROWEST = 48  # a drawing is laid out for at least this many columns, and cut where there are fewer
_MARGIN = 2


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
    first, *more = wording.wrapped(title, sheet.words, 2)
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


def odd(length: float, most: int) -> int:
    """Round a length to an odd number of characters, so that it has a middle; at most the odd number `most`."""
    return min(most, max(1, 2 * round((length - 1) / 2) + 1))


def projection_rows(sheet: Sheet, funnel: Projection) -> list[TextRow]:
    """Draw a projection as two slanted walls around the connecting line; nothing between equal widths."""
    if funnel.before == funnel.after:
        return []
    outer, inner = sheet.left(max(funnel.before, funnel.after)), sheet.left(min(funnel.before, funnel.after))
    left = min((outer + inner) // 2, sheet.area // 2 - 1)
    falling, rising = _WALLS if funnel.before > funnel.after else _WALLS[::-1]
    gap = " " * (sheet.area // 2 - left - 1)
    return [TextRow(left, (Span(f"{falling}{gap}│{gap}{rising}"),), (Span(wording.describe_projection(funnel)),))]


def worded(part: TextPart, room: int) -> list[tuple[Span, ...]]:
    """Break the words of a part into rows that start with its glyph."""
    left = room if part.swatch is None else room - 2
    lines = [line for sentence in part.words.split("\n") for line in wording.wrapped(sentence, left, part.indent)]
    if part.swatch is None:
        return [(Span(line, strong=part.strong),) for line in lines]
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
    first, second = embedding.describe(shared=shared)
    rows = box(sheet, table, [TextPart((texture,), first), TextPart((), second)], "Embedding")
    rows[0] = TextRow(rows[0].left, (Span(rows[0].shape[0].text.replace("┴", "─")),), rows[0].words)
    return rows + projection_rows(sheet, Projection(table, embedding.width))


def run_rows(sheet: Sheet, run: LayerRun) -> list[TextRow]:
    """Draw the box of a run of equal layers."""
    times = f" x {run.times}" if run.times > 1 else ""
    layer = run.layer
    title = f"{wording.heading(run.first, run.last)}{times}, {wording.describe_layer(layer)}"
    if isinstance(layer, Block):
        parts = _block_parts(sheet, layer)
    else:
        room, widest = sheet.inside(layer.width), max(branch.width for _, branch in layer.branches)
        parts = [_junction_part(index, one, room, widest) for index, one in enumerate(layer.junctions, start=1)]
    if run.times > 1 and (between := inner_projection([run])):
        parts.append(TextPart((), wording.describe_between(between)))
    return box(sheet, run.layer.width, parts, title, run.times)


def run_row(sheet: Sheet, run: LayerRun) -> TextRow:
    """Draw a layer in one row, for very deep designs."""
    layer = run.layer
    mixer = layer.mixer if isinstance(layer, Block) else layer.junctions[-1].left.operation
    filling = tiles(mixer.SWATCH, mixer.head_count, sheet.inside(layer.width))
    times = f" x {run.times}" if run.times > 1 else ""
    place = f"{run.first}{times}".ljust(8) + f"{layer.width:>5}  "
    words = wording.shortened(wording.brief(layer), sheet.words - len(place) - 2)
    shape = (Span("│ "), *filling, Span(" │"))
    glyph = Span(mixer.SWATCH.glyph, mixer.SWATCH)
    return TextRow(sheet.left(layer.width), shape, (Span(place), glyph, Span(f" {words}")))


def _block_parts(sheet: Sheet, block: Block) -> list[TextPart]:
    room, parts = sheet.inside(block.width), []
    operations: list[Operation] = [block.mixer] if block.cross is None else [block.mixer, block.cross]
    for operation in operations:
        look = operation.SWATCH
        heads = tiles(look, operation.head_count, room)
        parts.append(TextPart((heads,), operation.describe(), look))
    if block.feed_forward:
        bars = [("━" * odd(width * sheet.bar_scale, room)).center(room) for width in block.feed_forward]
        parts.append(TextPart(tuple((Span(bar),) for bar in bars), wording.describe_feed_forward(block)))
    return parts


def _junction_part(index: int, junction: Junction, room: int, widest: int) -> TextPart:
    left, right = junction.left, junction.right
    half = (room - 3) // 2
    if right is None:
        alone = padded(_branch(left, half, widest), room)
        return TextPart((alone,), f"{index}: {wording.describe_branch(left)}", indent=7)
    pair = (*_branch(left, half, widest), Span(f" {_COMBINE[junction.combine]} "), *_branch(right, half, widest))
    words = f"{index}: {wording.describe_branch(left)}\n   | {junction.combine} | {wording.describe_branch(right)}"
    return TextPart((pair,), words, indent=7)


def _branch(branch: Branch, room: int, widest: int) -> tuple[Span, ...]:
    length = max(1, round(room * branch.width / widest))
    return padded(tiles(branch.operation.SWATCH, 1, length), room)


def draw_text(card: Card, *, colour: bool = False, columns: int = 80) -> str:
    """Draw a design for a terminal; `colour` uses ANSI escapes for 256 colours."""
    room = max(columns, _NARROWEST) - _MARGIN
    area = room * 2 // 5
    area -= 1 - area % 2  # odd, so that boxes have a middle
    sheet = Sheet(area, room - area - 3, area / widest(card), 0)
    sheet = replace(sheet, bar_scale=bar_scale(card, sheet.inside))
    lines: list[tuple[Span, ...]] = [(Span(wording.headline(card), strong=True),), ()]
    for stack in card.stacks:
        if len(card.stacks) > 1:
            lines += [(Span("Encoder" if stack is card.encoder else "Decoder", strong=True),), ()]
        for row in _stack_rows(sheet, card, stack):
            gap = Span(" " * (sheet.area + 3 - row.left - _length(row.shape)))
            words = (gap, *row.words) if row.words else ()
            lines.append((Span(" " * (_MARGIN + row.left)), *row.shape, *words))
        lines.append(())
    lines += _legend(card, columns)
    return "\n".join(_painted(line, colour, columns) for line in lines) + "\n"


def _stack_rows(sheet: Sheet, card: Card, stack: Stack) -> Iterator[TextRow]:
    yield from embedding_rows(sheet, stack.embedding, card.share_embedding and stack is card.decoder)
    repeats = fold_layers(stack.layers)
    many = sum(len(repeat.runs) for repeat in repeats) >= MANY
    if many:
        yield TextRow(0, (), (Span(f"{'layer':<8}{'width':>5}  feed-forward, mixer", strong=True),))
    before = stack.embedding.width
    for repeat in repeats:
        yield from [] if many else projection_rows(sheet, Projection(before, repeat.runs[0].layer.width))
        yield from _framed(sheet, repeat, _run_rows(sheet, repeat, many))
        before = repeat.runs[-1].layer.output_width
    yield from projection_rows(sheet, Projection(before, stack.output_width))
    if stack.final_norm:
        half = sheet.box(stack.output_width) // 4
        yield TextRow(sheet.area // 2 - half, (Span("╌" * half + "┼" + "╌" * half),), (Span("norm"),))
    for words in wording.describe_head(card) if stack is card.stacks[-1] else ():
        filling = (Span("░" * sheet.inside(card.output_width)),)
        yield from box(sheet, card.output_width, [TextPart((filling,), words)], "Head")


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
    projected = f", {wording.describe_between(between)}" if between else ""
    words = f"{wording.heading(repeat.first, repeat.last)}, this pattern x {repeat.times}{projected}"
    dashes = "╌" * (sheet.area // 2 - 1)
    first, *more = wording.wrapped(words, sheet.words, 2)
    yield TextRow(0, (Span(f"┌{dashes}│{dashes}┐"),), (Span(first, strong=True),))
    yield from (TextRow(sheet.area // 2, (Span("│"),), (Span(line, strong=True),)) for line in more)
    yield from rows
    yield TextRow(0, (Span(f"└{dashes}│{dashes}┘"),))


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
    room, text = columns, ""
    for span in line:
        piece = wording.shortened(span.text, room)
        room -= len(piece)
        look, style = span.swatch, Style(bold=span.strong)
        if look is not None and look.filled:
            style = Style(color=ink(look.colour), bgcolor=look.colour)
        text += style.render(piece, color_system=ColorSystem.EIGHT_BIT) if colour else piece
    return text.rstrip()
