"""Tables that count, draw and list all legal terms of a shape, a size and a set of inputs.

A *kind* of terms is its result shape, its number of operations and the set of inputs it uses (one bit each). A
*production* is one way to make a term of a kind: an operation and the kinds of its operands, or an input. The number of
terms of a kind is the sum over its productions of the product over their operands, so counts are exact without listing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import accumulate, islice, product
from typing import NamedTuple, TypeAlias

from numpy.random import Generator

from formwright.arch.primitives import BINARY, COMMUTATIVE, INPUT_SHAPE, INPUTS, UNARY, Shape, Term, canonical
from formwright.space.design import below, pick

SHAPES: tuple[Shape, ...] = tuple((rows, columns) for rows in "nd" for columns in "nd")
ALL_INPUTS = (1 << len(INPUTS)) - 1


class TermKind(NamedTuple):
    """A set of terms with the same shape, size and inputs."""

    shape: Shape
    size: int
    inputs: int


class Production(NamedTuple):
    """One way to make terms of a kind: a symbol applied to terms of the operands' kinds."""

    symbol: str
    operands: tuple[TermKind, ...]
    terms: int


Forms: TypeAlias = dict[Shape, list[tuple[str, tuple[Shape, ...]]]]


class TermTables:
    """The number of terms of each kind, up to `largest` operations."""

    def __init__(self, largest: int) -> None:
        self._forms = _forms()
        every = range(1, ALL_INPUTS + 1)
        self._unions = {one: [pair for pair in product(every, repeat=2) if pair[0] | pair[1] == one] for one in every}
        self._made: dict[TermKind, tuple[list[Production], list[int]]] = {}
        self._counts: dict[TermKind, int] = {}
        for size, shape, inputs in product(range(largest + 1), SHAPES, every):
            kind = TermKind(shape, size, inputs)
            # small sizes come first, so the counts of all operands are there when a kind needs them
            total = sum(production.terms for production in self._make(kind))
            if total:
                self._counts[kind] = total

    def count(self, kind: TermKind) -> int:
        """Count the terms of a kind; operands of a commutative operation in either order are one term."""
        return self._counts.get(kind, 0)

    def sample(self, kind: TermKind, rng: Generator) -> Term:
        productions, ends = self._productions(kind)
        symbol, operands, _ = productions[pick(rng, ends)]
        if not operands:
            return symbol
        if symbol not in COMMUTATIVE:
            return (symbol, *(self.sample(operand, rng) for operand in operands))
        return canonical((symbol, *self._sample_unordered(operands, rng)))

    def enumerate(self, kind: TermKind) -> Iterator[Term]:
        for symbol, operands, _ in self._productions(kind)[0]:
            if not operands:
                yield symbol
            elif len(operands) == 1:
                yield from ((symbol, term) for term in self.enumerate(operands[0]))
            else:
                yield from self._enumerate_binary(symbol, *operands)

    def _productions(self, kind: TermKind) -> tuple[list[Production], list[int]]:
        if kind not in self._made:
            # kept with its running totals, because drawing many terms visits the same kinds over and over
            productions = list(self._make(kind))
            self._made[kind] = productions, list(accumulate(production.terms for production in productions))
        return self._made[kind]

    def _make(self, kind: TermKind) -> Iterator[Production]:
        if kind.size == 0:
            for bit, letter in enumerate(INPUTS):
                if kind == (INPUT_SHAPE, 0, 1 << bit):
                    yield Production(letter, (), 1)
            return
        for symbol, shapes in self._forms[kind.shape]:
            for operands in self._operands(kind, shapes):
                count = self._applications(symbol, operands)
                if count:
                    yield Production(symbol, operands, count)

    def _operands(self, kind: TermKind, shapes: tuple[Shape, ...]) -> Iterator[tuple[TermKind, ...]]:
        if len(shapes) == 1:
            yield (TermKind(shapes[0], kind.size - 1, kind.inputs),)
            return
        for size, (left, right) in product(range(kind.size), self._unions[kind.inputs]):
            yield TermKind(shapes[0], size, left), TermKind(shapes[1], kind.size - 1 - size, right)

    def _applications(self, symbol: str, operands: tuple[TermKind, ...]) -> int:
        counts = [self.count(operand) for operand in operands]
        if len(counts) == 1:
            return counts[0]
        if symbol in COMMUTATIVE and operands[0] == operands[1]:
            return counts[0] * (counts[0] + 1) // 2
        if symbol in COMMUTATIVE and operands[0] > operands[1]:
            return 0  # counted with its operands the other way round
        return counts[0] * counts[1]

    def _sample_unordered(self, operands: tuple[TermKind, ...], rng: Generator) -> tuple[Term, Term]:
        left, right = operands
        first = self.sample(left, rng)
        # of the n(n+1)/2 unordered pairs from one kind, n are a term with itself
        if left == right and below(rng, self.count(left) + 1) < 2:
            return first, first
        second = self.sample(right, rng)
        while left == right and second == first:
            second = self.sample(right, rng)
        return first, second

    def _enumerate_binary(self, symbol: str, left: TermKind, right: TermKind) -> Iterator[Term]:
        for index, first in enumerate(self.enumerate(left)):
            unordered = symbol in COMMUTATIVE and left == right
            for second in islice(self.enumerate(right), index if unordered else 0, None):
                yield canonical((symbol, first, second))


@cache
def operand_shapes(operation: str, result: Shape) -> tuple[tuple[Shape, ...], ...]:
    """List the operand shapes from which an operation makes a result of a shape; there is always one."""
    return tuple(shapes for name, shapes in _forms()[result] if name == operation)


def _forms() -> Forms:
    applied = [
        *((name, (shape,), rule(shape)) for name, rule in UNARY.items() for shape in SHAPES),
        *((name, pair, rule(*pair)) for name, rule in BINARY.items() for pair in product(SHAPES, repeat=2)),
    ]
    return {shape: [(name, operands) for name, operands, result in applied if result == shape] for shape in SHAPES}
