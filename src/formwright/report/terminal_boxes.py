"""The pieces of a text drawing: boxes, what stands in them, and the funnels between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from formwright.report.fold import Funnel
from formwright.report.palette import Swatch
from formwright.report.wrap import wrapped

_WALLS = (
    "\N{BOX DRAWINGS LIGHT DIAGONAL UPPER LEFT TO LOWER RIGHT}",
    "\N{BOX DRAWINGS LIGHT DIAGONAL UPPER RIGHT TO LOWER LEFT}",
)


@dataclass(frozen=True)
class Span:
    """A piece of a row in one look."""

    text: str
    swatch: Swatch | None = None
    strong: bool = False


@dataclass(frozen=True)
class Row:
    """One row of the drawing: a shape that starts `left` characters into its column, and words beside it."""

    left: int
    shape: tuple[Span, ...]
    words: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Part:
    """What stands inside a box: rows that fill it from border to border, and words beside them."""

    rows: tuple[tuple[Span, ...], ...]
    words: str = ""
    swatch: Swatch | None = None
    strong: bool = False
    indent: int = 2  # of the lines that continue the words


@dataclass(frozen=True)
class Sheet:
    """The measures of a drawing: characters for shapes and for words, and the lengths that stand for widths."""

    area: int
    words: int
    scale: float  # characters for one unit of layer width
    bar_scale: float  # characters for one unit of feed-forward width

    def box(self, width: int) -> int:
        """Give the characters that a box for this width takes, borders included; odd, so that it has a middle."""
        return max(9, odd(width * self.scale, self.area))

    def inside(self, width: int) -> int:
        """Give the characters between the borders of the box for this width, margins excluded."""
        return self.box(width) - 4

    def left(self, width: int) -> int:
        """Give the place where the box for this width starts."""
        return (self.area - self.box(width)) // 2


def box(sheet: Sheet, width: int, parts: Sequence[Part], title: str, times: int = 1) -> list[Row]:
    """Draw a box around parts; a box that stands for several layers lies on a second sheet."""
    size, left = sheet.box(width), sheet.left(width)
    joint = sheet.area // 2 - left
    first, *more = wrapped(title, sheet.words, 2)
    rows = [Row(left, (Span(_edge("╭╮", size, joint, "┴")),), (Span(first, strong=True),))]
    for part in [*(Part((), line, strong=True) for line in more), *parts]:
        for inside, words in zip_longest(part.rows, worded(part, sheet.words)):
            second = "" if times == 1 else "╮" if len(rows) == 1 else "│"
            filling = inside or (Span(" " * (size - 4)),)
            rows.append(Row(left, (Span("│ "), *filling, Span(f" │{second}")), words or ()))
    if times == 1:
        return [*rows, Row(left, (Span(_edge("╰╯", size, joint, "┬")),))]
    upper, lower = _edge("╰╯", size) + "│", _edge("╰╯", size, joint - 1, "┬")
    return [*rows, Row(left, (Span(upper),)), Row(left + 1, (Span(lower),))]


def tiles(swatch: Swatch, count: int, room: int) -> tuple[Span, ...]:
    """Fill the room with a bar of the operation's colour, cut into `count` heads as far as they fit."""
    shown = min(count, (room + 1) // 2)
    each = (room - (shown - 1)) // shown
    heads = [swatch.glyph * each] * shown
    if shown < count:
        heads[-1] = "…"
    spans = [span for head in heads for span in (Span(head, swatch), Span(" "))]
    return padded(spans[:-1], room)


def padded(spans: Sequence[Span], room: int) -> tuple[Span, ...]:
    """Put spans into the middle of the room."""
    spare = room - sum(len(span.text) for span in spans)
    return (Span(" " * (spare // 2)), *spans, Span(" " * (spare - spare // 2)))


def bar(sheet: Sheet, width: int, room: int) -> tuple[Span, ...]:
    """Draw a feed-forward width as a bar in the middle of the room."""
    return (Span(("━" * odd(width * sheet.bar_scale, room)).center(room)),)


def odd(length: float, most: int) -> int:
    """Round a length to an odd number of characters, so that it has a middle; at most the odd number `most`."""
    return min(most, max(1, 2 * round((length - 1) / 2) + 1))


def funnel_row(sheet: Sheet, funnel: Funnel, words: str) -> Row:
    """Draw a projection as the two slanted walls of a funnel around the stem between two boxes."""
    outer, inner = sheet.left(max(funnel.before, funnel.after)), sheet.left(min(funnel.before, funnel.after))
    left = min((outer + inner) // 2, sheet.area // 2 - 1)
    falling, rising = _WALLS if funnel.before > funnel.after else _WALLS[::-1]
    gap = " " * (sheet.area // 2 - left - 1)
    shape = f"{falling}{gap}│{gap}{rising}"
    return Row(left, (Span(shape),), (Span(words),))


def worded(part: Part, room: int) -> list[tuple[Span, ...]]:
    """Break the words of a part into rows, behind its glyph."""
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
