"""Edits of a term: change one node, graft a subterm of another term, or replace an operation and repair its operands.

The moves of a `TermGene` identify an operation by its place in the order of
computation: operands before what they enter, left before right. Operands that no longer fit are transposed, dropped or
joined by new ones, and so are those of the operations that follow. The cheapest ways to reach each shape are followed
from the changed node up to the whole term, so that as little as possible changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, product
from typing import NamedTuple, TypeAlias

from numpy.random import Generator

from formwright.arch.primitives import BINARY, INPUT_SHAPE, INPUTS, UNARY, Shape, Term, canonical, shape_of
from formwright.space.design import Gene
from formwright.space.terms import SHAPES, operand_shapes

Position: TypeAlias = tuple[int, ...]
Legal: TypeAlias = Callable[[Term], bool]
_Drawn: TypeAlias = dict[Shape, list["_Offer"]]
_WAYS = 2  # candidates kept for each shape
_NEW = 2  # operands drawn for each shape, where a new one is needed


def positions(term: Term) -> Iterator[tuple[Position, Term]]:
    """List every subterm with its position, in preorder; a position is a path of operand numbers, from 1."""
    yield (), term
    if isinstance(term, tuple):
        for index, operand in enumerate(term[1:], start=1):
            for position, subterm in positions(operand):
                yield (index, *position), subterm


def replaced(term: Term, position: Position, subterm: Term) -> Term:
    if not position:
        return subterm
    index, *rest = position
    assert isinstance(term, tuple), "an input has no operand to enter"
    return (*term[:index], replaced(term[index], tuple(rest), subterm), *term[index + 1 :])


def one_node_edits(term: Term) -> Iterator[Term]:
    """List the canonical terms that differ in one node, legal or not, possibly more than once.

    An input becomes another input, an operation another of the same arity, or a unary operation that keeps the shape of
    its operand is inserted or deleted.
    """
    for position, node in positions(term):
        for edited in _node_edits(node):
            yield canonical(replaced(term, position, edited))


def graft(first: Term, second: Term, rng: Generator, legal: Callable[[Term], bool]) -> Term:
    """Replace a random subterm of `first` by a random subterm of `second` of the same shape, keeping the term legal.

    Both terms are legal and have one shape, so at worst the whole of `second` is the result.
    """
    pairs = [
        (position, grafted)
        for position, subterm in positions(first)
        for _, grafted in positions(second)
        if shape_of(subterm) == shape_of(grafted)
    ]
    children = (canonical(replaced(first, *pairs[index])) for index in rng.permutation(len(pairs)))
    return next(child for child in children if legal(child))


def _node_edits(node: Term) -> Iterator[Term]:
    shape = shape_of(node)
    yield from ((inserted, node) for inserted in UNARY if _keeps(inserted, shape))
    if isinstance(node, str):
        yield from (letter for letter in INPUTS if letter != node)
        return
    operation, *operands = node
    assert isinstance(operation, str), "an application starts with its operation"
    peers = UNARY if operation in UNARY else BINARY
    yield from ((peer, *operands) for peer in peers if peer != operation)
    if operation in UNARY and _keeps(operation, shape_of(operands[0])):
        yield operands[0]


def _keeps(operation: str, shape: Shape) -> bool:
    return UNARY[operation](shape) == shape


class _Offer(NamedTuple):
    """A candidate term: its cost in nodes added or removed, and the index of the old operand it holds."""

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
    parts = dict(positions(term))
    return tuple(str(parts[position][0]) for position in operations_of(term))


def _applied(operation: str, kept: Sequence[Term], drawn: _Drawn, needed: int | None = None) -> Iterator[_Offer]:
    """List applications of an operation that use some of the `kept` operands, and the `needed` one if given."""
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
            elif index != needed:  # a transpose that was just inserted is not removed again
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


@dataclass(frozen=True, slots=True)
class TermGene(Gene):
    """A gene that holds a term; every move returns another term, or None if no legal one was found.

    Places count the operations in the order in which they are computed, from 0, and the inputs as they are written.
    """

    legal: Legal = field(repr=False, kw_only=True)

    @property
    def operations(self) -> tuple[str, ...]:
        return operation_names(self.value)

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(part for _, part in positions(self.value) if isinstance(part, str))

    def with_operation(self, place: int, operation: str, rng: Generator) -> Term | None:
        """Replace the operation at a place and repair its operands with as few changes as possible."""
        position, node = self._at(place)
        drawn = _draw_new(self.value, rng)
        return self._mended(position, _applied(operation, node[1:], drawn), drawn, rng)

    def with_insertion(self, place: int, operation: str, rng: Generator) -> Term | None:
        """Apply an operation to the last operand at a place."""
        position, node = self._at(place)
        drawn = _draw_new(self.value, rng)
        return self._mended((*position, len(node) - 1), _applied(operation, node[-1:], drawn), drawn, rng)

    def without_operation(self, place: int, rng: Generator) -> Term | None:
        """Replace the operation at a place by one of its operands."""
        position, node = self._at(place)
        offers = (_Offer(_dropped(node[1:], [index]), operand) for index, operand in enumerate(node[1:]))
        return self._mended(position, offers, _draw_new(self.value, rng), rng)

    def with_input(self, place: int, letter: str) -> Term | None:
        leaves = [position for position, part in positions(self.value) if isinstance(part, str)]
        term = canonical(replaced(self.value, leaves[place], letter))
        return term if self.legal(term) else None

    def _at(self, place: int) -> tuple[Position, Term]:
        position = operations_of(self.value)[place]
        return position, dict(positions(self.value))[position]

    def _mended(self, position: Position, offers: Iterable[_Offer], drawn: _Drawn, rng: Generator) -> Term | None:
        """Put an offer at a position and repair what is around it; return the cheapest legal term."""
        parts = dict(positions(self.value))
        ways = _by_cost(offers, rng)
        while position:
            *above, index = position
            position = tuple(above)
            node = parts[position]
            around = (
                _Offer(offer.cost + way.cost, way.term)
                for offer in _few_of_each_shape(ways)
                for way in _applied(str(node[0]), [*node[1:index], offer.term, *node[index + 1 :]], drawn, index - 1)
            )
            ways = _by_cost(around, rng)
        terms = (canonical(offer.term) for offer in ways if shape_of(offer.term) == INPUT_SHAPE)
        return next(filter(self.legal, terms), None)
