"""Draw a design as a self-contained SVG: no scripts, no fonts from elsewhere, nothing but shapes and words."""

from collections.abc import Mapping
from dataclasses import replace

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.report.palette import Swatch, swatches_of
from formwright.report.svg_canvas import (
    BAR,
    LETTER,
    LINE,
    QUIET,
    STRIP,
    WIRE,
    Drawn,
    lines,
    page,
    path,
    point,
    rect,
    text,
    wrapped,
)
from formwright.report.svg_column import Column
from formwright.report.svg_rails import draw_rails, rail_room
from formwright.report.svg_stack import draw_stack
from formwright.report.words import headline

_MARGIN, _GAP = 34, 30


def draw_svg(card: Card, title: str = "", costs: Mapping[str, str] | None = None) -> str:
    """Draw a design; `costs` are names and values, printed at the foot."""
    columns, width = _columns(card)
    top = _header(card, title, width)
    stacks = [
        draw_stack(column, card, stack, top.bottom + (26 if len(columns) > 1 else 0))
        for column, stack in zip(columns, card.stacks, strict=True)
    ]
    elements = [*top.elements, *_names(columns, top.bottom)]
    if len(stacks) == 2:
        elements += draw_rails(
            columns[0].centre + columns[0].room / 2, stacks[0].ports, stacks[1].ports, len(card.stacks[0].layers)
        )
    elements += [item for stack in stacks for item in stack.elements]
    legend = _legend(card, max(stack.bottom for stack in stacks) + 34, width)
    foot = _footer(costs or {}, legend.bottom, width)
    return page(
        width, foot.bottom + _MARGIN - 10, title or headline(card), [*elements, *legend.elements, *foot.elements]
    )


def _columns(card: Card) -> tuple[list[Column], float]:
    """Lay out one column, or two whose shapes face each other with their words outside."""
    if len(card.stacks) == 1:
        room, words = 360.0, 330.0
        left = _MARGIN + room + _GAP
        columns = [Column(_MARGIN + room / 2, room, left, words, "start", 1)]
        width = left + words + _MARGIN
    else:
        room, words = 250.0, 270.0
        inner = _MARGIN + words + _GAP
        between = 2 * room + rail_room(card)
        ends = inner + room / 2, inner + between - room / 2
        columns = [
            Column(ends[0], room, inner - _GAP, words, "end", 1),
            Column(ends[1], room, inner + between + _GAP, words, "start", 1),
        ]
        width = inner + between + _GAP + words + _MARGIN
    return [_scaled(column, card) for column in columns], width


def _scaled(column: Column, card: Card) -> Column:
    """Set one scale for all widths, and one for all bars, so that the fullest box just holds its bars."""
    widest = max(max(stack.embedding.width, *(layer.width for layer in stack.layers)) for stack in card.stacks)
    sized = replace(column, scale=column.room / widest)
    blocks = {layer for stack in card.stacks for layer in stack.layers if isinstance(layer, Block)}
    ratios = [sized.inside(block.width) / max(block.feed_forward) for block in blocks if block.feed_forward]
    return replace(sized, bar_scale=min(ratios, default=0))


def _header(card: Card, title: str, width: float) -> Drawn:
    elements, y = [], _MARGIN + 12.0
    for line in wrapped(title, (width - 2 * _MARGIN) * 0.6):
        elements.append(text(_MARGIN, y, line, font_size=20, font_weight="bold"))
        y += 22
    elements.append(text(_MARGIN, y, headline(card), fill=QUIET, font_size=13))
    return Drawn(tuple(elements), y + 24)


def _names(columns: list[Column], top: float) -> list[str]:
    if len(columns) == 1:
        return []
    look: dict[str, str | float] = {"font_size": 14, "font_weight": "bold", "text_anchor": "middle"}
    names = zip(columns, ("Encoder", "Decoder"), strict=True)
    return [text(column.centre, top + 8, name, **look) for column, name in names]


def _legend(card: Card, top: float, width: float) -> Drawn:
    entries = [*swatches_of(card), Swatch("feed-forward", BAR, ""), Swatch("layer norm", STRIP, "")]
    elements = [path(f"M{point(_MARGIN, top - 18)}H{width - _MARGIN:.1f}", "#E2DFD8")]
    x, y = float(_MARGIN), top
    for entry in entries:
        room = 24 + LETTER * len(entry.name) + 16
        if x + room > width - _MARGIN and x > _MARGIN:
            x, y = _MARGIN, y + 22
        dashes: dict[str, str | float] = {} if entry.filled else {"stroke": WIRE, "stroke_dasharray": "3 2"}
        elements.append(rect(x, y, 14, 14, entry.colour if entry.filled else "none", rx=3, **dashes))
        elements.append(text(x + 20, y + 11.5, entry.name))
        x += room
    return Drawn(tuple(elements), y + 18)


def _footer(costs: Mapping[str, str], top: float, width: float) -> Drawn:
    words = wrapped(
        "   \N{MIDDLE DOT}   ".join(f"{name} {value}" for name, value in costs.items()), width - 2 * _MARGIN
    )
    elements = lines(_MARGIN, top + 20, words, fill=QUIET)
    return Drawn(tuple(elements), top + (8 + LINE * len(words) if words else 0))
