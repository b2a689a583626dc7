"""From a term to a flat program: steps that each make one value of earlier ones, every distinct value once."""

from collections import Counter
from dataclasses import dataclass

from formwright.arch.primitives import INPUT_SHAPE, Shape, Term, inputs_of, shape_of
from formwright.arch.simplify import simplified

ATTEND = "attend"  # softmax(queries · keysᵀ / √d ...) · values in one step, by torch's fused kernel
_PRODUCTS = ("matmul", "cosine", "euclidean")
GROWING = (*_PRODUCTS, ATTEND)  # cosines do not grow, but their gradients do
_BETWEEN_0_AND_1 = ("softmax", "softsign", "cosine")  # but for the sign


@dataclass(frozen=True)
class Step:
    """Apply an operation to earlier values; `scales` counts the divisions by √d that a fused attention does."""

    operation: str
    operands: tuple[int, ...]
    shapes: tuple[Shape, ...]  # of the operands
    scales: int = 0


@dataclass(frozen=True)
class Program:
    """Make values one after the other, after those of the inputs in the order Q, K, V, P; one is the result."""

    steps: tuple[Step, ...]
    result: int

    @property
    def grows(self) -> bool:
        """Tell whether products of products can make numbers of any size, unlike one ordinary attention."""
        return sum(step.operation in GROWING for step in self.steps) > 1


def compiled(term: Term, *, fused: bool = True) -> Program:
    """Compile a term.

    A fused program computes the simplified term, unless that takes more products, and recognises attention in it.
    Otherwise the steps are the operations as they are written.
    """
    chosen = min((simplified(term), term), key=_products) if fused else term
    return _Compiler(chosen, inputs_of(term), fused).program()


class _Compiler:
    def __init__(self, term: Term, inputs: tuple[str, ...], fused: bool) -> None:
        self.term, self.fused = term, fused
        self.places: dict[Term, int] = {letter: place for place, letter in enumerate(inputs)}
        self.steps: list[Step] = []
        # how many distinct values read each one: what others read too has to be computed anyway
        self.readers = Counter(operand for part in _distinct(term) for operand in set(part[1:]))

    def program(self) -> Program:
        result = self._place(self.term)
        return Program(tuple(self.steps), result)

    def _place(self, term: Term) -> int:
        """Give the place of a value, after all steps that make it."""
        if term not in self.places:
            operation, operands, scales = self._recognised(term) or (str(term[0]), term[1:], 0)
            taken = tuple(self._place(operand) for operand in operands)
            self.steps.append(Step(operation, taken, tuple(map(shape_of, operands)), scales))
            self.places[term] = len(self.places)
        return self.places[term]

    def _recognised(self, term: Term) -> tuple[str, tuple[Term, ...], int] | None:
        """Take a term for softmax(a·b / √d)·c with a and c of the shape of inputs; None where it is something else."""
        if not self.fused or term[0] != "matmul" or term[1][0] != "softmax" or self.readers[term[1]] > 1:
            return None
        scores, values, scales = term[1][1], term[2], 0
        while scores[0] == "scale" and self.readers[scores] == 1:
            scores, scales = scores[1], scales + 1
        if scores[0] != "matmul" or self.readers[scores] > 1:
            return None
        queries, turned = scores[1], scores[2]
        keys: Term = turned[1] if turned[0] == "transpose" else ("transpose", turned)
        operands = (queries, keys, values)
        fits = all(shape_of(operand) == INPUT_SHAPE and _tame(operand) for operand in operands)
        return (ATTEND, operands, scales) if fits else None


def _tame(term: Term) -> bool:
    """Tell whether a value is about as large as inputs are: inside the kernel nothing keeps gradients from overflow."""
    if isinstance(term, str) or term[0] in _BETWEEN_0_AND_1:
        return True
    return term[0] not in _PRODUCTS and all(map(_tame, term[1:]))


def _distinct(term: Term) -> set[Term]:
    """List the distinct applications within a term."""
    found: set[Term] = set()

    def visit(part: Term) -> None:
        if not isinstance(part, str) and part not in found:
            found.add(part)
            for operand in part[1:]:
                visit(operand)

    visit(term)
    return found


def _products(term: Term) -> int:
    return sum(1 for part in _distinct(term) if part[0] in _PRODUCTS)
