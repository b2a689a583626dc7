"""Formulas of op graphs as drawn graphs of their operations."""

from __future__ import annotations

from dataclasses import dataclass, field

from formwright.arch.formula import formula, softplus_operand
from formwright.arch.primitives import Term
from formwright.arch.simplify import simplified
from formwright.report.markup import Markup, join, number, tag
from formwright.report.svg_canvas import LETTER, inline, path, point, text

_WORDS = {"neg": "-x", "transpose": "xᵀ", "scale": "x / √d", "add": "x + y", "matmul": "x·y"}
_HIGH, _ROW, _GAP, _MARGIN = 24.0, 32.0, 24.0, 6.0  # of a box, from row to row, between columns, around all
_TAP, _TALL = 9.0, 22.0


@dataclass(frozen=True)
class _Node:
    """An input or an operation: its label, the indices of its operands, its column, and its row, which may be half."""

    words: str
    operands: tuple[int, ...]
    column: int
    row: float


@dataclass
class _Plan:
    """The nodes of a term; operands precede their operation, and the result is the last node.

    A shared operation appears once. Inputs are repeated next to each operation that reads them, so no lines cross.
    """

    nodes: list[_Node] = field(default_factory=list)
    places: dict[Term, int] = field(default_factory=dict)
    inputs: int = 0

    def place(self, term: Term, column: int = 0) -> int:
        """Return the index of a term's node; an input goes into the column that its reader chooses."""
        if isinstance(term, str):
            return self._add(term, (), column, float(self.inputs))
        if term not in self.places:
            operands = _operands(term)
            before = max(_depth(operand) for operand in operands)
            taken = tuple(self.place(operand, before) for operand in operands)
            level = sum(self.nodes[one].row for one in taken) / len(taken)
            words = _WORDS.get(str(term[0]), str(term[0])) if softplus_operand(term) is None else "softplus"
            self.places[term] = self._add(words, taken, before + 1, level)
        return self.places[term]

    def _add(self, words: str, operands: tuple[int, ...], column: int, row: float) -> int:
        """Put a node into its column, as near to its row as the others there allow."""
        rows = [node.row for node in self.nodes if node.column == column]
        while near := [other for other in rows if abs(row - other) < 1]:
            row = 1 + max(near)
        self.inputs += not operands
        self.nodes.append(_Node(words, operands, column, row))
        return len(self.nodes) - 1


def _operands(term: Term) -> tuple[Term, ...]:
    if isinstance(term, str):
        return ()
    inner = softplus_operand(term)
    return term[1:] if inner is None else (inner,)


def _depth(term: Term) -> int:
    """Return the number of operations on the longest path from an input."""
    return 1 + max(map(_depth, _operands(term)), default=-1)


def draw_formula(term: Term) -> Markup:
    """Draw a formula from its inputs on the left to the result on the right."""
    plan = _Plan()
    plan.place(simplified(term))
    nodes = plan.nodes
    widths = [16 + LETTER * max(1, len(node.words)) for node in nodes]
    columns = range(max(node.column for node in nodes) + 1)
    most = [max(wide for wide, node in zip(widths, nodes, strict=True) if node.column == column) for column in columns]
    lefts = [_MARGIN + sum(most[:column]) + column * _GAP for column in columns]
    middles = [(lefts[node.column] + most[node.column] / 2, _MARGIN + _HIGH / 2 + _ROW * node.row) for node in nodes]
    wires = []
    for node, (x, y), wide in zip(nodes, middles, widths, strict=True):
        for turn, operand in enumerate(node.operands):
            port = y + (0.0 if len(node.operands) == 1 else (turn - 0.5) * 10)  # the left one of two enters above
            wires.append(_wire((middles[operand][0] + widths[operand] / 2, middles[operand][1]), (x - wide / 2, port)))
    boxes = [_box(node, middle, wide) for node, middle, wide in zip(nodes, middles, widths, strict=True)]
    out = middles[-1][0] + widths[-1] / 2
    wires.append(_wire((out, middles[-1][1]), (out + _GAP / 2, middles[-1][1])))
    height = max(y for _, y in middles) + _HIGH / 2 + _MARGIN
    return inline(out + _GAP / 2 + _MARGIN, height, f"The graph of {formula(term)}", [*wires, *boxes], grows=False)


def draw_kernel(kernel: int, largest: int) -> Markup:
    """Draw a kernel as the tokens it covers, on a track as long as the largest kernel."""
    width = 2 * _MARGIN + _TAP * largest
    start = (width - _TAP * kernel) / 2
    track = tag("rect", x=_MARGIN, y=_MARGIN + 8, width=_TAP * largest, height=_TALL - 16, class_="full", rx=3)
    kinds = ["tap middle" if index == kernel // 2 else "tap" for index in range(kernel)]
    taps = [
        tag("rect", x=start + _TAP * index + 1, y=_MARGIN, width=_TAP - 2, height=_TALL, class_=kind)
        for index, kind in enumerate(kinds)
    ]
    return inline(width, _TALL + 2 * _MARGIN, f"A kernel of {kernel} tokens", [track, *taps], grows=False)


def _wire(start: tuple[float, float], end: tuple[float, float]) -> Markup:
    half = (start[0] + end[0]) / 2
    curve = f"M{point(*start)}C{number(half)},{number(start[1])} {number(half)},{number(end[1])} {point(*end)}"
    return path(curve, "none", class_="wire")


def _box(node: _Node, middle: tuple[float, float], wide: float) -> Markup:
    x, y = middle
    kind = "operation" if node.operands else "input"
    shape = tag(
        "rect", x=x - wide / 2, y=y - _HIGH / 2, width=wide, height=_HIGH, rx=6 if node.operands else 12, class_=kind
    )
    return join(shape, text(x, y + 4, node.words, text_anchor="middle", class_=f"{kind}-name"))
