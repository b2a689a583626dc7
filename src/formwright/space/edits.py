"""Edits of a term: change one node, or graft a subterm of another term."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from numpy.random import Generator

from formwright.arch.primitives import BINARY, INPUTS, UNARY, Shape, Term, canonical, shape_of

Position: TypeAlias = tuple[int, ...]


def positions(term: Term) -> Iterator[tuple[Position, Term]]:
    """List every subterm with its position, in preorder; a position is the operand to enter at each step, from 1."""
    yield (), term
    if isinstance(term, tuple):
        for index, operand in enumerate(term[1:], start=1):
            for position, subterm in positions(operand):
                yield (index, *position), subterm


def replaced(term: Term, position: Position, subterm: Term) -> Term:
    """Return the term with the subterm at a position replaced."""
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
