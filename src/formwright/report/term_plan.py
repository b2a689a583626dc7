"""Where the operations of a formula stand in its drawing: from inputs on the left to the result on the right."""

from __future__ import annotations

from dataclasses import dataclass

from formwright.arch.primitives import Term
from formwright.arch.simplify import simplified
from formwright.report.formula import softplus_operand

_WORDS = {"neg": "-x", "transpose": "xᵀ", "scale": "x / √d", "add": "x + y", "matmul": "x·y"}


@dataclass(frozen=True)
class Node:
    """An input or an operation: its words, the places of its operands, its column, and its row, which may be half."""

    words: str
    operands: tuple[int, ...]
    column: int
    row: float


def plan(term: Term) -> tuple[Node, ...]:
    """Lay out the simplified term; operands stand before what they enter, and the result is the last node.

    An operation that is used twice is there once. Inputs stand beside each operation that they enter, so that no line
    has to pass others.
    """
    planner = _Planner()
    planner.place(simplified(term))
    return tuple(planner.nodes)


class _Planner:
    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.places: dict[Term, int] = {}
        self.inputs = 0

    def place(self, term: Term, column: int = 0) -> int:
        """Give the place of a term in the list of nodes; an input stands in a column that its reader chooses."""
        if isinstance(term, str):
            return self._add(term, (), column, float(self.inputs))
        if term not in self.places:
            operands = _operands(term)
            before = max(_depth(operand) for operand in operands)
            taken = tuple(self.place(operand, before) for operand in operands)
            level = sum(self.nodes[one].row for one in taken) / len(taken)
            self.places[term] = self._add(_words(term), taken, before + 1, level)
        return self.places[term]

    def _add(self, words: str, operands: tuple[int, ...], column: int, row: float) -> int:
        """Put a node in its column, as near to its row as others there allow."""
        beside = [node.row for node in self.nodes if node.column == column]
        while near := [other for other in beside if abs(row - other) < 1]:
            row = 1 + max(near)
        self.inputs += not operands
        self.nodes.append(Node(words, operands, column, row))
        return len(self.nodes) - 1


def _operands(term: Term) -> tuple[Term, ...]:
    if isinstance(term, str):
        return ()
    inner = softplus_operand(term)
    return term[1:] if inner is None else (inner,)


def _words(term: Term) -> str:
    return _WORDS.get(str(term[0]), str(term[0])) if softplus_operand(term) is None else "softplus"


def _depth(term: Term) -> int:
    """Count the operations from the inputs to the value of a term, along the longest way."""
    return 1 + max(map(_depth, _operands(term)), default=-1)
