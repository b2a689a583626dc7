"""The gene of an op graph: one term, whose operations and inputs can be changed one at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

from numpy.random import Generator

from formwright.arch.primitives import Term, canonical
from formwright.space.edits import positions, replaced
from formwright.space.gene import Gene
from formwright.space.rewrite import Legal, operation_names, with_insertion, with_operation, without_operation


@dataclass(frozen=True, slots=True)
class TermGene(Gene):
    """Name a gene that holds a term; every move returns another term for it, or None where no legal one was found.

    Places count the operations in the order in which they are computed, from 0, and the inputs as they are written.
    """

    legal: Legal = field(repr=False, kw_only=True)

    @property
    def operations(self) -> tuple[str, ...]:
        """List the operations in the order in which they are computed."""
        return operation_names(self.value)

    @property
    def inputs(self) -> tuple[str, ...]:
        """List the inputs as they are written, repeated ones too."""
        return tuple(part for _, part in positions(self.value) if isinstance(part, str))

    def with_operation(self, place: int, operation: str, rng: Generator) -> Term | None:
        """Put another operation in a place and mend its operands, with as few changes as possible."""
        return with_operation(self.value, place, operation, rng, self.legal)

    def with_insertion(self, place: int, operation: str, rng: Generator) -> Term | None:
        """Compute a further operation before that in a place."""
        return with_insertion(self.value, place, operation, rng, self.legal)

    def without_operation(self, place: int, rng: Generator) -> Term | None:
        """Leave out the operation in a place, and what entered it but one operand."""
        return without_operation(self.value, place, rng, self.legal)

    def with_input(self, place: int, letter: str) -> Term | None:
        """Read another input in a place."""
        leaves = [position for position, part in positions(self.value) if isinstance(part, str)]
        term = canonical(replaced(self.value, leaves[place], letter))
        return term if self.legal(term) else None
