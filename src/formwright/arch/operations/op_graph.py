"""Attention as a searched formula."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from formwright.arch.compute_blocks import BlockKind, ComputeBlock, Drawing
from formwright.arch.formula import formula
from formwright.arch.operations.base import Heads, Operation, Place, Swatch, heads_in_words, in_heads
from formwright.arch.primitives import (
    BINARY,
    COMMUTATIVE,
    PRODUCTS,
    UNARY,
    Term,
    canonical,
    distinct,
    inputs_of,
    shape_of,
    show_shape,
)
from formwright.arch.simplify import representative
from formwright.arch.tensors import Factor, Product, Tensor, linear
from formwright.core.codec import Leaf, Positive
from formwright.core.errors import Fault, IllegalDesign

_PRIMITIVES = (*UNARY, *BINARY)
_DEEPEST = 64  # no formula is deeper; keeps recursion over hostile input bounded


def _read_term(data: Any, depth: int = 0) -> Term:
    """Turn nested lists into a term; `OpGraph` checks its meaning."""
    if isinstance(data, str):
        return data
    if not isinstance(data, list) or not data:
        raise ValueError("must be an input such as 'Q' or a list such as ['softmax', 'Q']")
    if depth == _DEEPEST:
        raise ValueError(f"is nested deeper than {_DEEPEST} operations")
    return tuple(_read_term(item, depth + 1) for item in data)


def _write_term(term: Term) -> Any:
    return term if isinstance(term, str) else [_write_term(item) for item in term]


_TERM = Leaf(
    _read_term, _write_term, {"type": ["array", "string"], "description": "Nested lists: [operation, operand, ...]"}
)


@dataclass(frozen=True)
class OpGraph(Operation):
    """Attention written as a graph of primitive operations over Q, K, V and P; common parts are computed once."""

    TYPE: ClassVar[str] = "op-graph"
    MODULE: ClassVar[str] = "formwright.nn.operations.op_graph:OpGraphAttention"
    PLACES: ClassVar[tuple[Place, ...]] = ("mixer",)
    SWATCH: ClassVar[Swatch] = Swatch("op graph", "#882255", "ƒ")
    CAUSAL: ClassVar[bool] = False
    INPUT_MAPS: ClassVar[tuple[str, ...]] = ("inputs",)
    ELASTIC: ClassVar[Mapping[str, str]] = {"heads": "heads"}
    heads: Heads
    head_width: Positive
    term: Annotated[Term, _TERM]

    def __post_init__(self) -> None:
        """Sort commutative operands, and reject a graph that does not map (n, d) inputs to an (n, d) output."""
        try:
            shape = shape_of(self.term)
        except IllegalDesign as error:
            raise IllegalDesign([Fault(f"term: {fault.where}", fault.what) for fault in error.faults]) from None
        if shape != ("n", "d"):
            raise IllegalDesign([Fault("term", f"gives shape {show_shape(shape)}; an attention must give (n, d)")])
        if isinstance(self.term, str):
            raise IllegalDesign(
                [Fault("term", f"is the bare input {self.term}; an attention applies at least one operation")]
            )
        object.__setattr__(self, "term", canonical(self.term))

    @property
    def inputs(self) -> tuple[str, ...]:
        return inputs_of(self.term)

    def tensors(self, inputs: Factor, outputs: Factor, memory: Factor) -> Iterator[Tensor]:
        heads = in_heads(self.heads, self.head_width)
        for letter in self.inputs:
            yield from linear(f"inputs.{letter}", (inputs,), heads)
        yield from linear("output", heads, (outputs,))

    def products(self, width: int, output: int, tokens: int, memory: tuple[int, int]) -> Iterator[Product]:
        inner = self.heads * self.head_width
        yield Product("map", (tokens, inner, len(self.inputs) * width + output))
        sizes = {"n": tokens, "d": self.head_width}
        for part in distinct(self.term):  # a repeated subterm is computed once
            if part[0] in PRODUCTS:
                dimensions = (*shape_of(part), shape_of(part[1])[1])
                yield Product("mix", (self.heads, *(sizes[one] for one in dimensions)))

    def describe(self) -> str:
        return f"{heads_in_words(self.heads, self.head_width)}, {formula(self.term)}"

    def describe_alone(self) -> str:
        return f"{self.SWATCH.name}, {self.describe()}"

    def block(self) -> tuple[int, ...]:
        return (BlockKind.IDENTITY,)

    def draw(self, drawing: Drawing, width: int, entry: int) -> list[int]:
        # Q, K, V and P are all linear maps of the same input, so their letters are names and not labels; formulas that
        # are equal by algebra are one graph
        inner, shape = self.heads * self.head_width, f"{self.heads}x{self.head_width}"
        projection = ComputeBlock(BlockKind.PROJECTION, (width, inner))
        done: dict[Term, int] = {}

        def node_of(term: Term) -> int:
            if term not in done:
                if isinstance(term, str):
                    done[term] = drawing.node(f"project {width}>{shape}", projection, entry)
                else:
                    name = str(term[0])
                    operands = [node_of(operand) for operand in term[1:]]
                    compute = ComputeBlock(BlockKind.PRIMITIVE, (_PRIMITIVES.index(name), inner), name)
                    done[term] = drawing.node(f"{name} {shape}", compute, *operands, ordered=name not in COMMUTATIVE)
            return done[term]

        result = node_of(representative(self.term))
        last = ComputeBlock(BlockKind.PROJECTION, (inner, width))
        return [drawing.node(f"project {shape}>{width}", last, result)]
