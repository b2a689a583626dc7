"""Change one operation of a term, and mend what no longer fits.

Operations are told apart by their place in the order in which they are computed: operands before what they enter, the
left one first. Operands of the changed operation are transposed, dropped or joined by new ones until they fit, and so
are those of the operations that follow. Of all this as little as possible: the cheapest ways to reach each shape are
followed from the change up to the whole term.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, product
from typing import NamedTuple, TypeAlias

from numpy.random import Generator

from formwright.arch.primitives import INPUT_SHAPE, INPUTS, Shape, Term, canonical, shape_of
from formwright.space.edits import Position, positions
from formwright.space.terms import SHAPES, operand_shapes

Legal: TypeAlias = Callable[[Term], bool]
_Drawn: TypeAlias = dict[Shape, list["_Offer"]]

_WAYS = 2  # that are followed for each shape
_NEW = 2  # operands drawn for each shape, where a new one is needed


class _Offer(NamedTuple):
    """Offer a term: what it costs in nodes that come or go, and the number of the old operand that it holds."""

    cost: int
    term: Term
    old: int | None = None


def operations_of(term: Term) -> list[Position]:
    """List the positions of the operations in the order in which they are computed."""
    if isinstance(term, str):
        return []
    inner = [(index, *position) for index, operand in enumerate(term[1:], 1) for position in operations_of(operand)]
    return [*inner, ()]


@lru_cache(maxsize=1 << 14)
def operation_names(term: Term) -> tuple[str, ...]:
    """List the operations in the order in which they are computed."""
    parts = dict(positions(term))
    return tuple(str(parts[position][0]) for position in operations_of(term))


def with_operation(term: Term, place: int, operation: str, rng: Generator, legal: Legal) -> Term | None:
    """Return the nearest legal term found that has `operation` in a place of this one; None if none was found."""
    position = operations_of(term)[place]
    drawn = _draw_new(term, rng)
    return _mended(term, position, _applied(operation, dict(positions(term))[position][1:], drawn), drawn, rng, legal)


def with_insertion(term: Term, place: int, operation: str, rng: Generator, legal: Legal) -> Term | None:
    """Return the nearest legal term found in which the last operand in a place first passes `operation`."""
    position = operations_of(term)[place]
    node = dict(positions(term))[position]
    drawn = _draw_new(term, rng)
    offers = _applied(operation, node[-1:], drawn)
    return _mended(term, (*position, len(node) - 1), offers, drawn, rng, legal)


def without_operation(term: Term, place: int, rng: Generator, legal: Legal) -> Term | None:
    """Return the nearest legal term found in which one of its operands takes an operation's place."""
    position = operations_of(term)[place]
    operands = dict(positions(term))[position][1:]
    offers = (_Offer(_dropped(operands, [index]), operand) for index, operand in enumerate(operands))
    return _mended(term, position, offers, _draw_new(term, rng), rng, legal)


def _mended(
    term: Term, position: Position, offers: Iterable[_Offer], drawn: _Drawn, rng: Generator, legal: Legal
) -> Term | None:
    """Put an offer in a position and mend what is around it; return the cheapest legal term."""
    parts = dict(positions(term))
    ways = _by_cost(offers, rng)
    while position:
        *above, index = position
        position = tuple(above)
        around = (
            _Offer(offer.cost + way.cost, way.term)
            for offer in _few_of_each_shape(ways)
            for way in _around(parts[position], index, offer.term, drawn)
        )
        ways = _by_cost(around, rng)
    terms = (canonical(offer.term) for offer in ways if shape_of(offer.term) == INPUT_SHAPE)
    return next(filter(legal, terms), None)


def _around(node: Term, index: int, changed: Term, drawn: _Drawn) -> Iterator[_Offer]:
    """List applications of a node's own operation that have what was changed among their operands."""
    return _applied(str(node[0]), [*node[1:index], changed, *node[index + 1 :]], drawn, index - 1)


def _applied(operation: str, kept: Sequence[Term], drawn: _Drawn, needed: int | None = None) -> Iterator[_Offer]:
    """List applications of an operation that use some of the operands to keep, or the `needed` one at least."""
    for shapes in chain.from_iterable(operand_shapes(operation, result) for result in SHAPES):
        for operands in product(*([*_fitting(shape, kept, needed), *drawn[shape]] for shape in shapes)):
            used = [operand.old for operand in operands if operand.old is not None]
            if len(set(used)) == len(used) and (needed in used if needed is not None else used):
                swapped = used != sorted(used)
                cost = sum(operand.cost for operand in operands) + _dropped(kept, used) + swapped
                yield _Offer(cost, (operation, *(operand.term for operand in operands)))


def _fitting(shape: Shape, kept: Sequence[Term], needed: int | None) -> Iterator[_Offer]:
    for index, operand in enumerate(kept):
        if shape_of(operand) == shape:
            yield _Offer(0, operand, index)
        elif shape_of(operand) == shape[::-1]:
            if operand[0] != "transpose":
                yield _Offer(1, ("transpose", operand), index)
            elif index != needed:  # a transpose that was just put there is not taken away again
                yield _Offer(1, operand[1], index)


def _draw_new(term: Term, rng: Generator) -> _Drawn:
    """Draw new operands of every shape: inputs, products of two inputs, or parts of the term."""
    drawn: _Drawn = {}
    for shape in SHAPES:
        parts = (part for _, part in positions(term) if part != term and shape_of(part) == shape)
        every = list(dict.fromkeys([*_beginnings(shape), *parts]))
        drawn[shape] = [_Offer(_nodes(every[index]), every[index]) for index in rng.permutation(len(every))[:_NEW]]
    return drawn


def _beginnings(shape: Shape) -> list[Term]:
    pairs = list(product(INPUTS, repeat=2))
    match shape:
        case ("n", "d"):
            return list(INPUTS)
        case ("d", "n"):
            return [("transpose", letter) for letter in INPUTS]
        case ("n", "n"):
            return [("matmul", left, ("transpose", right)) for left, right in pairs]
        case _:
            return [("matmul", ("transpose", left), right) for left, right in pairs]


def _by_cost(offers: Iterable[_Offer], rng: Generator) -> list[_Offer]:
    """Sort offers by cost, equally cheap ones at random."""
    every = list(offers)
    return sorted([every[index] for index in rng.permutation(len(every))], key=lambda offer: offer.cost)


def _few_of_each_shape(offers: list[_Offer]) -> Iterator[_Offer]:
    left = dict.fromkeys(SHAPES, _WAYS)
    for offer in offers:
        shape = shape_of(offer.term)
        left[shape] -= 1
        if left[shape] >= 0:
            yield offer


def _dropped(kept: Sequence[Term], used: list[int]) -> int:
    return sum(_nodes(operand) for index, operand in enumerate(kept) if index not in used)


@lru_cache(maxsize=1 << 14)
def _nodes(term: Term) -> int:
    return sum(1 for _ in positions(term))
