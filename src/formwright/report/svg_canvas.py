"""What SVG drawings are made of: shapes, words, whole drawings, and the colours they share."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from formwright.report.markup import Markup, number, tag

PAPER, SHEET, EDGE, RULE = "#FBFAF7", "#FFFFFF", "#98A1AC", "#E2DFD8"
INK, QUIET, WIRE, FAINT = "#1F2933", "#5B6670", "#8A94A0", "#B9C1CA"
BAR, STRIP, FILL = "#7B8794", "#C3CAD3", "#E4E8ED"
Anchor = Literal["start", "end"]
LINE = 16  # from one line of words to the next
LETTER = 7.0  # a generous guess of the average letter of 12 pixel sans-serif type, since no font is known here
_FONT = "system-ui, -apple-system, Segoe UI, DejaVu Sans, Helvetica, Arial, sans-serif"


@dataclass(frozen=True)
class Port:
    """A point where cross-attention starts, at layer `layer`, or ends, at a reader of `reads` layers."""

    left: float
    right: float
    y: float
    layer: int = 0
    reads: int = 0


@dataclass(frozen=True)
class Drawn:
    """Finished elements, the y of their lower edge, and their ports."""

    elements: tuple[Markup, ...]
    bottom: float
    ports: tuple[Port, ...] = ()


def rect(x: float, y: float, width: float, height: float, fill: str, **attributes: str | float) -> Markup:
    return tag("rect", x=x, y=y, width=width, height=height, fill=fill, **attributes)


def box(x: float, y: float, width: float, height: float, fill: str = SHEET, **attributes: str | float) -> Markup:
    return rect(x, y, width, height, fill, stroke=EDGE, **attributes)


def path(data: str, stroke: str = WIRE, **attributes: str | float) -> Markup:
    return tag("path", d=data, fill="none", stroke=stroke, **attributes)


def text(x: float, y: float, words: str, **attributes: str | float) -> Markup:
    """Write words with their baseline at y."""
    return tag("text", words, x=x, y=y, **attributes)


def lines(x: float, y: float, words: list[str], **attributes: str | float) -> list[Markup]:
    """Write lines of words, the first with its baseline at y."""
    return [text(x, y + index * LINE, line, **attributes) for index, line in enumerate(words)]


def arrow(x: float, top: float, bottom: float) -> list[Markup]:
    return [
        path(f"M{point(x, top)}V{number(bottom - 4)}", stroke_width=1.2),
        tag("path", d=f"M{point(x - 3.5, bottom - 6)}h7l-3.5,6z", fill=WIRE),
    ]


def pill(x: float, y: float, times: int) -> list[Markup]:
    """Draw a badge with a number of repetitions, centred on a point."""
    words = f"\N{MULTIPLICATION SIGN} {times}"
    width = 14 + LETTER * len(words)
    box = rect(x - width / 2, y - 10, width, 20, INK, rx=10)
    return [box, text(x, y + 4.2, words, fill=PAPER, font_weight="bold", text_anchor="middle")]


def page(width: float, height: float, title: str, elements: Iterable[Markup]) -> Markup:
    """Return a complete SVG file."""
    paper = rect(0.5, 0.5, width - 1, height - 1, PAPER, stroke=RULE, rx=10)
    body = Markup("\n".join(["", tag("title", title), paper, *elements, ""]))
    attributes: dict[str, str | float] = {
        "xmlns": "http://www.w3.org/2000/svg",
        "width": width,
        "height": height,
        "viewBox": f"0 0 {number(width)} {number(height)}",
        "font_family": _FONT,
        "font_size": 12,
        "fill": INK,
        "role": "img",
    }
    return Markup(tag("svg", body, **attributes) + "\n")


def inline(width: float, height: float, label: str, elements: Iterable[Markup], *, grows: bool = True) -> Markup:
    """Make a drawing for the inside of a page, which gives it its font and, by classes, colours for light and dark.

    It grows with its place, if it may; where that is much smaller, words stay legible and the place has to scroll.
    """
    most = "" if grows else f";max-width:{number(width)}px"
    attributes: dict[str, str | float] = {
        "viewBox": f"0 0 {number(width)} {number(height)}",
        "class_": "drawn",
        "style": f"min-width:{number(0.8 * width)}px{most}",
        "role": "img",
        "aria_label": label,
    }
    return Markup(tag("svg", Markup("\n".join(["", *elements, ""])), **attributes) + "\n")


def point(x: float, y: float) -> str:
    return f"{number(x)},{number(y)}"
