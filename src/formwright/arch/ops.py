"""The vocabulary: every operation a layer may use, as plain values.

An operation maps vectors of one width to vectors of another, for a whole sentence at once. It says how it is shaped
and nothing about its position; `formwright.arch.layers` puts operations into layers.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from formwright.arch.primitives import Term, canonical, inputs_of, shape_of, show_shape
from formwright.core.codec import Leaf, Positive, Range
from formwright.core.errors import Fault, IllegalDesign

Heads = Annotated[int, Range(1, 1024)]  # each is a node of the design's graph


@dataclass(frozen=True)
class Relative:
    """Trained relative positions: tables of `rows` vectors as wide as a head, shared by the heads.

    `axes` is 1 for text and 2 for images; `values` adds tables for the values to those for the keys.
    """

    rows: Positive
    axes: Literal[1, 2] = 1
    values: bool = False


@dataclass(frozen=True)
class Attention:
    """Multi-head self-attention; `sdp` scores are scaled dot products, `wma` scores put a trained matrix in between."""

    TYPE: ClassVar[str] = "attention"
    heads: Heads
    head_width: Positive
    score: Literal["sdp", "wma"] = "sdp"
    relative: Relative | None = None
    bias: bool = True


@dataclass(frozen=True)
class CrossAttention:
    """Attention of a decoder to the outputs of the last `layers` encoder layers, side by side."""

    TYPE: ClassVar[str] = "cross-attention"
    heads: Heads
    head_width: Positive
    layers: Positive = 1
    bias: bool = True


@dataclass(frozen=True)
class RelativeAttention:
    """The term softmax(Q R^T / sqrt(d)) V, which adds positions to a mixer that has none of its own."""

    heads: Heads
    head_width: Positive
    rows: Positive


@dataclass(frozen=True)
class Transform:
    """Token mixing by a fixed transform over tokens and features: real part of `dft`, or `dct`."""

    TYPE: ClassVar[str] = "transform"
    transform: Literal["dft", "dct"]
    relative: RelativeAttention | None = None


@dataclass(frozen=True)
class DynamicConvolution:
    """Span-based dynamic convolution: each token's kernel is generated from the span around it."""

    TYPE: ClassVar[str] = "dynamic-convolution"
    kernel: Positive
    heads: Heads
    head_width: Positive
    relative: Relative | None = None


@dataclass(frozen=True)
class SeparableConvolution:
    """Depthwise then pointwise convolution, `stacked` times."""

    TYPE: ClassVar[str] = "separable-convolution"
    kernel: Positive
    stacked: Positive = 2


@dataclass(frozen=True)
class LightweightConvolution:
    """Depthwise convolution whose softmax-normalised kernels are shared within `heads` groups of channels.

    When `gated`, the input first passes a gated linear unit and the output a linear map.
    """

    TYPE: ClassVar[str] = "lightweight-convolution"
    kernel: Positive
    heads: Positive
    gated: bool = True


@dataclass(frozen=True)
class Convolution:
    """Plain convolution over tokens; with kernel 1 it is a dense layer."""

    TYPE: ClassVar[str] = "convolution"
    kernel: Positive = 1


@dataclass(frozen=True)
class GatedLinearUnit:
    """Two dense maps, one gating the other."""

    TYPE: ClassVar[str] = "gated-linear-unit"


@dataclass(frozen=True)
class Identity:
    """Pass the input on unchanged."""

    TYPE: ClassVar[str] = "identity"


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
class OpGraph:
    """Attention written as a graph of primitive operations over Q, K, V and P; common parts are computed once."""

    TYPE: ClassVar[str] = "op-graph"
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


Mixer = Attention | Transform | DynamicConvolution | SeparableConvolution | LightweightConvolution | OpGraph | Identity
BranchOperation = (
    Attention
    | CrossAttention
    | Convolution
    | SeparableConvolution
    | LightweightConvolution
    | GatedLinearUnit
    | Identity
)
Operation = Mixer | BranchOperation
OPERATIONS: tuple[type[Operation], ...] = (
    Attention,
    CrossAttention,
    Transform,
    DynamicConvolution,
    SeparableConvolution,
    LightweightConvolution,
    Convolution,
    GatedLinearUnit,
    OpGraph,
    Identity,
)
# Operations that read the whole sequence at once and cannot be masked.
NEVER_CAUSAL = (Transform, OpGraph)
