"""Draw a design as a self-contained SVG: no scripts, no fonts from elsewhere, nothing but shapes and words."""

from collections.abc import Mapping
from dataclasses import replace

from formwright.arch.card import Card
from formwright.report.palette import Swatch, swatches_of
from formwright.report.scale import bar_scale, widest
from formwright.report.svg_canvas import (
    BAR,
    LETTER,
    LINE,
    QUIET,
    RULE,
    STRIP,
    WIRE,
    Drawn,
    lines,
    page,
    path,
    point,
    rect,
    text,
)
from formwright.report.svg_column import Column
from formwright.report.svg_rails import draw_rails, rail_room
from formwright.report.svg_stack import draw_stack
from formwright.report.words import headline
from formwright.report.wrap import wrapped

_MARGIN, _GAP = 34, 30


def draw_svg(card: Card, title: str = "", costs: Mapping[str, str] | None = None) -> str:
    """Draw a design; `costs` are names and values, printed at the foot."""
    columns, width = _columns(card)
    header = _header(card, title, width)
    below = header.bottom + (26 if len(columns) > 1 else 0)
    stacks = [draw_stack(column, card, stack, below) for column, stack in zip(columns, card.stacks, strict=True)]
    elements = [*header.elements, *_names(columns, header.bottom)]
    if len(stacks) == 2:
        between = columns[0].centre + columns[0].room / 2
        elements += draw_rails(between, stacks[0].ports, stacks[1].ports, len(card.stacks[0].layers))
    elements += [item for stack in stacks for item in stack.elements]
    legend = _legend(_entries(card, elements), max(stack.bottom for stack in stacks) + 36, width)
    footer = _footer(costs or {}, legend.bottom, width)
    elements += [*legend.elements, *footer.elements]
    return page(width, footer.bottom + 24, title or headline(card), elements)


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
    sized = replace(column, scale=column.room / widest(card))
    return replace(sized, bar_scale=bar_scale(card, sized.inside))


def _header(card: Card, title: str, width: float) -> Drawn:
    elements, y = [], _MARGIN + 12.0
    for line in wrapped(title, int((width - 2 * _MARGIN) / LETTER * 0.6), most=3):
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


def _entries(card: Card, elements: list[str]) -> list[Swatch]:
    """List what the legend explains: the operations of the card, and the shapes without words that were drawn."""
    shapes = {"feed-forward": BAR, "norm": STRIP}
    drawn = [name for name in shapes if any(f'class="{name}"' in item for item in elements)]
    return [*swatches_of(card), *(Swatch(name, shapes[name], "") for name in drawn)]


def _legend(entries: list[Swatch], top: float, width: float) -> Drawn:
    elements = [path(f"M{point(_MARGIN, top - 18)}H{width - _MARGIN:.1f}", RULE)]
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
    words = "  \N{MIDDLE DOT}  ".join(f"{name}: {value}" for name, value in costs.items())
    printed = wrapped(words, int((width - 2 * _MARGIN) / LETTER))
    elements = lines(_MARGIN, top + 20, printed, fill=QUIET)
    return Drawn(tuple(elements), top + (8 + LINE * len(printed) if printed else 0))
