"""Primitive operations of searched attention formulas, and static inference of their shapes.

An attention is written as a *term* over the projected inputs Q, K, V and P: an input is its letter, an application is
a tuple ``("matmul", left, right)``. Shapes are symbolic pairs over ``n`` (tokens) and ``d`` (head width), so a term
that type-checks here runs for every length and every width. The vocabulary is Table 1 of AutoBERT-Zero (Gao et al.,
2022).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from formwright.core.errors import Fault, IllegalDesign

Term: TypeAlias = "str | tuple[Term, ...]"
Shape: TypeAlias = tuple[str, str]

_cached = lru_cache(maxsize=1 << 16)  # bounded, because long searches meet ever new terms
INPUTS = ("Q", "K", "V", "P")
INPUT_SHAPE: Shape = ("n", "d")


def _same(shape: Shape) -> Shape | None:
    return shape


def _equal(left: Shape, right: Shape) -> Shape | None:
    return left if left == right else None


def _between_rows(left: Shape, right: Shape) -> Shape | None:
    return (left[0], right[0]) if left[1] == right[1] else None


UNARY: dict[str, Callable[[Shape], Shape | None]] = {
    "neg": _same,
    "transpose": lambda shape: (shape[1], shape[0]),
    "scale": _same,
    "softmax": _same,
    "logsigmoid": _same,
    "softsign": _same,
}
BINARY: dict[str, Callable[[Shape, Shape], Shape | None]] = {
    "add": _equal,
    "matmul": lambda left, right: (left[0], right[1]) if left[1] == right[0] else None,
    "cosine": _between_rows,
    "euclidean": _between_rows,
}
COMMUTATIVE = frozenset({"add"})
PRODUCTS = frozenset({"matmul", "cosine", "euclidean"})
MEANINGS = {
    "neg": "-x",
    "transpose": "x transposed",
    "scale": "x / sqrt(d), d being the head width",
    "softmax": "softmax over columns",
    "logsigmoid": "log(1 / (1 + exp(-x)))",
    "softsign": "x / (1 + |x|)",
    "add": "x + y, equal shapes",
    "matmul": "matrix product",
    "cosine": "cosine similarity of every row of x with every row of y",
    "euclidean": "Euclidean distance of every row of x to every row of y",
}


@_cached
def shape_of(term: Term) -> Shape:
    """Infer the shape of a term; raise `IllegalDesign` naming the first operation that cannot be applied."""
    if isinstance(term, str):
        if term in INPUTS:
            return INPUT_SHAPE
        raise _illegal(term, f"is not an input; inputs are {', '.join(INPUTS)}")
    operation, *operands = term
    if not isinstance(operation, str) or operation not in UNARY | BINARY:
        raise _illegal(term, f"starts with {operation!r}; operations are {', '.join(UNARY | BINARY)}")
    if len(operands) != arity(operation):
        raise _illegal(term, f"gives {len(operands)} operands to {operation}, which takes {arity(operation)}")
    shapes = [shape_of(operand) for operand in operands]
    result = UNARY[operation](shapes[0]) if operation in UNARY else BINARY[operation](shapes[0], shapes[1])
    if result is None:
        raise _illegal(term, f"applies {operation} to shapes {' and '.join(map(show_shape, shapes))}")
    return result


def arity(operation: str) -> int:
    return 1 if operation in UNARY else 2


def show_shape(shape: Shape) -> str:
    return f"({shape[0]}, {shape[1]})"


@_cached
def size(term: Term) -> int:
    """Count the operations of a term as it is written out; a subterm used twice counts twice."""
    return 0 if isinstance(term, str) else 1 + sum(size(operand) for operand in term[1:])


def distinct(term: Term) -> list[Term]:
    """List the different applications inside a term, operands before what reads them; inputs are none."""
    found: dict[Term, None] = {}

    def visit(part: Term) -> None:
        if not isinstance(part, str) and part not in found:
            for operand in part[1:]:
                visit(operand)
            found[part] = None

    visit(term)
    return list(found)


def inputs_of(term: Term) -> tuple[str, ...]:
    """List the distinct inputs a term uses, in the order Q, K, V, P."""
    return tuple(letter for letter in INPUTS if letter in _letters(term))


@_cached
def canonical(term: Term) -> Term:
    """Sort the operands of commutative operations, so that equal attentions are equal terms."""
    if isinstance(term, str):
        return term
    operands = tuple(canonical(operand) for operand in term[1:])
    return (term[0], *(sorted(operands, key=repr) if term[0] in COMMUTATIVE else operands))


@_cached
def _letters(term: Term) -> frozenset[str]:
    if isinstance(term, str):
        return frozenset({term})
    return frozenset().union(*(_letters(operand) for operand in term[1:]))


def _illegal(term: Term, what: str) -> IllegalDesign:
    return IllegalDesign([Fault(repr(term), what)], what="attention")
