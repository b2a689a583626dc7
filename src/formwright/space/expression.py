"""Op graphs as one gene: every legal formula over primitive operations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.random import Generator

from formwright.arch.primitives import (
    BINARY,
    INPUT_SHAPE,
    INPUTS,
    UNARY,
    Term,
    arity,
    canonical,
    inputs_of,
    shape_of,
    show_shape,
    size,
)
from formwright.core.errors import Fault, IllegalDesign, IllegalInput
from formwright.space.design import By, Combinator, Fill, Gene, Line, Path, Vector, below, weighted, wrong
from formwright.space.term_edits import TermGene, graft, one_node_edits, positions
from formwright.space.terms import ALL_INPUTS, TermKind, TermTables

_TOKENS = (*INPUTS, *UNARY, *BINARY)


@dataclass(frozen=True)
class Expressions(Combinator[Term]):
    """Choose a term over primitive operations whose result has the shape of its inputs.

    A term has 1 to `largest` operations as written out and uses `least_inputs` to `most_inputs` distinct inputs. Values
    are canonical: commutative operands are sorted. A term is one gene; its options are the terms one node away.
    """

    largest: int
    least_inputs: int = 2
    most_inputs: int = len(INPUTS)

    def __post_init__(self) -> None:
        if not 1 <= self.least_inputs <= self.most_inputs <= len(INPUTS):
            raise IllegalInput(f"the bounds on inputs must satisfy 1 <= least <= most <= {len(INPUTS)}, not {self}")
        if self.largest < max(1, self.least_inputs - 1):
            raise IllegalInput(f"{self.largest} operations cannot use {self.least_inputs} inputs; raise `largest`")

    def __getstate__(self) -> dict[str, int]:
        # the tables stay behind when a space is sent to another process: they are large and quick to make
        return asdict(self)

    @cached_property
    def _tables(self) -> TermTables:
        return TermTables(self.largest)

    @cached_property
    def _kinds(self) -> tuple[TermKind, ...]:
        kinds = (
            TermKind(INPUT_SHAPE, operations, inputs)
            for operations in range(1, self.largest + 1)
            for inputs in range(1, ALL_INPUTS + 1)
            if self.least_inputs <= inputs.bit_count() <= self.most_inputs
        )
        return tuple(kind for kind in kinds if self._tables.count(kind))

    @cached_property
    def _total(self) -> int:
        return sum(map(self._tables.count, self._kinds))

    def sample(self, rng: Generator, by: By = "design") -> Term:
        """Draw a term uniformly, or `by="gene"` first its size uniformly and then a term of that size uniformly."""
        kinds = self._kinds
        if by == "gene":  # nearly all terms are of the largest size, so that uniform terms are hardly ever simple
            sizes = [list(group) for _, group in groupby(self._kinds, key=lambda kind: kind.size)]
            kinds = tuple(sizes[below(rng, len(sizes))])
        return self._tables.sample(kinds[weighted(rng, list(map(self._tables.count, kinds)))], rng)

    def contains(self, value: object) -> bool:
        faults: list[Fault] = []
        term = _read(value, tuple, (), faults)
        return not faults and self._legal(term) and canonical(term) == term

    def enumerate(self) -> Iterator[Term]:
        for kind in self._kinds:
            yield from self._tables.enumerate(kind)

    def genes(self, value: Term, path: Path = ()) -> Iterator[Gene]:
        yield TermGene(path, value, self.choices, legal=self._legal)

    def outline(self, where: str = "") -> Iterator[Line]:
        inputs = f"{self.least_inputs} to {self.most_inputs} inputs"
        yield Line(where, (), f"{self.count():,} formulas of up to {self.largest} operations over {inputs}")

    def choices(self, term: Term) -> tuple[Term, ...]:
        """List the term and all legal terms that differ from it in one node."""
        return tuple(dict.fromkeys((term, *filter(self._legal, one_node_edits(term)))))

    def put(self, value: Term, path: Path, option: Any, fill: Fill) -> Term:
        assert not path, "an expression is one gene"
        return canonical(option)

    def crossover(self, first: Term, second: Term, rng: Generator) -> Term:
        """Graft a subterm of one parent, drawn at random, onto the other; equal parents are returned unchanged."""
        if first == second:
            return first
        stock, scion = (first, second) if below(rng, 2) else (second, first)
        return graft(stock, scion, rng, self._legal)

    @property
    def width(self) -> int:
        # binary operations alone make the longest term: one input more than operations
        return (2 * self.largest + 1) * len(_TOKENS)

    def write(self, value: Term, vector: Vector) -> None:
        rows = vector.reshape(-1, len(_TOKENS))
        for row, (_, node) in enumerate(positions(value)):
            rows[row, _TOKENS.index(node if isinstance(node, str) else node[0])] = 1.0

    def decode(self, vector: Vector) -> Term:
        """Read the preorder tokens; raise `IllegalDesign` if they form no term of this part."""
        rows = vector.reshape(-1, len(_TOKENS))
        tokens = iter([_TOKENS[index] for index in np.argmax(rows, axis=1)])
        term = _from_tokens(tokens)
        complaint = "the tokens end before the term does" if term is None else self._complaint(term)
        if term is None or complaint is not None:
            raise IllegalDesign([Fault("", f"the vector encodes no term of this space: {complaint}")], what="vector")
        return canonical(term)

    def to_json(self, value: Term) -> Any:
        return value if isinstance(value, str) else [self.to_json(entry) for entry in value]

    def from_json(self, data: object, where: Path, faults: list[Fault]) -> Any:
        found: list[Fault] = []
        term = _read(data, list, where, found)
        if not found:
            complaint = self._complaint(term)
            if complaint is None:
                return canonical(term)
            wrong(where, complaint, found)
        faults.extend(found)
        return None

    def _legal(self, term: Term) -> bool:
        return self._complaint(term) is None

    def _complaint(self, term: Term) -> str | None:
        try:
            shape = shape_of(term)
        except IllegalDesign as error:
            return f"{error.faults[0].where} {error.faults[0].what}"
        if shape != INPUT_SHAPE:
            return f"has shape {show_shape(shape)}; expected {show_shape(INPUT_SHAPE)}"
        if not 1 <= size(term) <= self.largest:
            return f"has {size(term)} operations; allowed: 1 to {self.largest}"
        if not self.least_inputs <= len(inputs_of(term)) <= self.most_inputs:
            return f"uses {len(inputs_of(term))} inputs; allowed: {self.least_inputs} to {self.most_inputs}"
        return None


def _read(data: Any, application: type[tuple[Any, ...]] | type[list[Any]], where: Path, faults: list[Fault]) -> Any:
    """Read nested tuples or lists (`application`) as a term, and collect the faults."""
    if isinstance(data, str) and data in INPUTS:
        return data
    if not isinstance(data, application) or not data:
        return wrong(where, f"is {data!r}; expected an input ({', '.join(INPUTS)}) or [operation, operands]", faults)
    operation, *operands = data
    if not isinstance(operation, str) or operation not in (*UNARY, *BINARY):
        return wrong((*where, 0), f"is {operation!r}; operations are {', '.join((*UNARY, *BINARY))}", faults)
    if len(operands) != arity(operation):
        return wrong(where, f"gives {len(operands)} operands to {operation}, which takes {arity(operation)}", faults)
    read = [_read(operand, application, (*where, index), faults) for index, operand in enumerate(operands, start=1)]
    return (operation, *read)


def _from_tokens(tokens: Iterator[str]) -> Term | None:
    token = next(tokens, None)
    if token is None or token in INPUTS:
        return token
    operands = [_from_tokens(tokens) for _ in range(arity(token))]
    known = tuple(operand for operand in operands if operand is not None)
    return (token, *known) if len(known) == len(operands) else None
