"""Draw a design as text: layers from top to bottom, widths as widths, words beside the shapes."""

from collections.abc import Iterator
from dataclasses import replace

from rich.color import ColorSystem
from rich.style import Style

from formwright.arch.card import Card
from formwright.arch.layers import Stack
from formwright.report.fold import Funnel, Repeat, fold, inner_funnel
from formwright.report.palette import swatches_of
from formwright.report.scale import bar_scale, widest
from formwright.report.terminal_boxes import Row, Sheet, Span
from formwright.report.terminal_layers import (
    embedding_rows,
    head_rows,
    norm_row,
    projection_rows,
    run_row,
    run_row_title,
    run_rows,
)
from formwright.report.words import describe_between, heading, headline
from formwright.report.wrap import shortened, wrapped

_NARROWEST = 48  # a drawing is laid out for at least this many columns, and cut where there are fewer
_MARGIN = 2
_MANY = 24  # from this many boxes on, a layer gets one row instead of a box


def draw_text(card: Card, *, colour: bool = False, columns: int = 80) -> str:
    """Draw a design for a terminal; with `colour`, operations are painted with ANSI escapes for 256 colours."""
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


def _stack_rows(sheet: Sheet, card: Card, stack: Stack) -> Iterator[Row]:
    yield from embedding_rows(sheet, stack.embedding, card.share_embedding and stack is card.decoder)
    repeats = fold(stack.layers)
    many = sum(len(repeat.runs) for repeat in repeats) >= _MANY
    if many:
        yield run_row_title()
    before = stack.embedding.width
    for repeat in repeats:
        yield from [] if many else projection_rows(sheet, Funnel(before, repeat.runs[0].layer.width))
        yield from _framed(sheet, repeat, _run_rows(sheet, repeat, many))
        before = repeat.runs[-1].layer.output_width
    if stack.final_norm:
        yield norm_row(sheet, stack.output_width)
    if stack is card.stacks[-1]:
        yield from head_rows(sheet, card)


def _run_rows(sheet: Sheet, repeat: Repeat, many: bool) -> Iterator[Row]:
    before = repeat.runs[0].layer.width
    for run in repeat.runs:
        if many:
            yield run_row(sheet, run)
        else:
            yield from projection_rows(sheet, Funnel(before, run.layer.width))
            yield from run_rows(sheet, run)
        before = run.layer.output_width


def _framed(sheet: Sheet, repeat: Repeat, rows: Iterator[Row]) -> Iterator[Row]:
    """Mark rows that stand for a repeated pattern by a line above and below them."""
    if repeat.times == 1:
        yield from rows
        return
    between = inner_funnel(repeat.runs)
    projected = f", {describe_between(between)}" if between else ""
    words = f"{heading(repeat.first, repeat.last)}, this pattern x {repeat.times}{projected}"
    dashes = "╌" * (sheet.area // 2 - 1)
    first, *more = wrapped(words, sheet.words, 2)
    yield Row(0, (Span(f"┌{dashes}│{dashes}┐"),), (Span(first, strong=True),))
    yield from (Row(sheet.area // 2, (Span("│"),), (Span(line, strong=True),)) for line in more)
    yield from rows
    yield Row(0, (Span(f"└{dashes}│{dashes}┘"),))


def _line(sheet: Sheet, row: Row) -> tuple[Span, ...]:
    used = row.left + _length(row.shape)
    gap = Span(" " * (sheet.area + 3 - used))
    return (Span(" " * (_MARGIN + row.left)), *row.shape, *((gap, *row.words) if row.words else ()))


def _legend(card: Card, columns: int) -> Iterator[tuple[Span, ...]]:
    line: tuple[Span, ...] = ()
    for swatch in swatches_of(card):
        entry = (Span("  "), Span(f" {swatch.glyph} ", swatch), Span(f" {swatch.name}"))
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
