"""The mixers of a layer drawn small: a formula as a graph of its operations, a convolution as its kernel."""

from formwright.arch.primitives import Term
from formwright.report.formula import formula
from formwright.report.svg_canvas import LETTER, element, inline, number, path, point, text
from formwright.report.term_plan import Node, plan

_HIGH, _ROW, _GAP, _MARGIN = 24.0, 32.0, 24.0, 6.0  # of a box, from row to row, between columns, around all
_TAP, _TALL = 9.0, 22.0


def draw_formula(term: Term) -> str:
    """Draw a formula: inputs on the left, and the result on the right."""
    nodes = plan(term)
    widths = [_wide(node) for node in nodes]
    columns = range(max(node.column for node in nodes) + 1)
    most = [max(wide for wide, node in zip(widths, nodes, strict=True) if node.column == column) for column in columns]
    lefts = [_MARGIN + sum(most[:column]) + column * _GAP for column in columns]
    middles = [(lefts[node.column] + most[node.column] / 2, _middle(node)) for node in nodes]
    wires = [
        _wire((middles[operand][0] + widths[operand] / 2, middles[operand][1]), (x - wide / 2, y + _port(node, turn)))
        for node, (x, y), wide in zip(nodes, middles, widths, strict=True)
        for turn, operand in enumerate(node.operands)
    ]
    boxes = [_box(node, middle, wide) for node, middle, wide in zip(nodes, middles, widths, strict=True)]
    out = middles[-1][0] + widths[-1] / 2
    wires.append(_wire((out, middles[-1][1]), (out + _GAP / 2, middles[-1][1])))
    height = max(y for _, y in middles) + _HIGH / 2 + _MARGIN
    return inline(out + _GAP / 2 + _MARGIN, height, f"The graph of {formula(term)}", [*wires, *boxes], grows=False)


def draw_kernel(kernel: int, largest: int) -> str:
    """Draw a kernel as the tokens that it sees, the one in the middle marked, on a track as long as the largest."""
    width = 2 * _MARGIN + _TAP * largest
    start = (width - _TAP * kernel) / 2
    track = element("rect", x=_MARGIN, y=_MARGIN + 8, width=_TAP * largest, height=_TALL - 16, class_="full", rx=3)
    taps = [
        element(
            "rect", x=start + _TAP * index + 1, y=_MARGIN, width=_TAP - 2, height=_TALL, class_=_kind(index, kernel)
        )
        for index in range(kernel)
    ]
    return inline(width, _TALL + 2 * _MARGIN, f"A kernel of {kernel} tokens", [track, *taps], grows=False)


def _kind(index: int, kernel: int) -> str:
    return "tap middle" if index == kernel // 2 else "tap"


def _wide(node: Node) -> float:
    return 16 + LETTER * max(1, len(node.words))


def _middle(node: Node) -> float:
    return _MARGIN + _HIGH / 2 + _ROW * node.row


def _port(node: Node, turn: int) -> float:
    """Tell how far above or below its middle an operand enters: the left one of two above."""
    return 0.0 if len(node.operands) == 1 else (turn - 0.5) * 10


def _wire(start: tuple[float, float], end: tuple[float, float]) -> str:
    half = (start[0] + end[0]) / 2
    curve = f"M{point(*start)}C{number(half)},{number(start[1])} {number(half)},{number(end[1])} {point(*end)}"
    return path(curve, "none", class_="wire")


def _box(node: Node, middle: tuple[float, float], wide: float) -> str:
    x, y = middle
    kind = "operation" if node.operands else "input"
    shape = element(
        "rect", x=x - wide / 2, y=y - _HIGH / 2, width=wide, height=_HIGH, rx=6 if node.operands else 12, class_=kind
    )
    return shape + text(x, y + 4, node.words, text_anchor="middle", class_=f"{kind}-name")
