"""What a design is made of: tensors with a role for every axis, and products of numbers.

A part of a design (an operation, a layer, an embedding, a head) declares its tensors and products once, without torch.
Parameters and MACs are sums over the declaration. The roles of the axes say how a smaller design reads its weights out
of a larger one's, which weights belong to one head or channel, and which follow the hidden size.
"""

from collections.abc import Iterable, Iterator
from math import prod
from typing import Any, Literal, NamedTuple

Cut = Literal["leading", "centred", "whole"]
# Groups that parts share; all others are named within a part.
STREAM = "stream"  # the vectors between the layers of a stack, whose number is the hidden size
MEMORY = "memory"  # the vectors that a decoder reads: the stream of its encoder
TABLE = "table"  # the vectors of a token table that is narrower than the stream
POOLED = "pooled"  # what the pooler writes


class Factor(NamedTuple):
    """A number of things that an axis counts, the group that they belong to, and how a smaller number is cut out.

    Factors of one group within a part count the same things: the heads that a map writes and the next one reads are cut
    and ordered together. `leading` things are the first ones, `centred` ones lie around the middle (kernels, tables of
    distances), and of `whole` ones no smaller number has a meaning. A factor without a group is independent of all
    others.
    """

    size: int
    group: str = ""
    cut: Cut = "leading"


Axis = tuple[Factor, ...]  # slowest first; their product is the length of the axis


class Tensor(NamedTuple):
    """A declared tensor: its name, as torch gives it, and its axes.

    `part` is the path of the part that it belongs to ("encoder.layers.3.mixer"); groups are named within it. `kind`
    says what must be equal in two designs for the tensor to mean the same in both: the type of an operation, its kind
    of score, whether it is gated. Both are set by `under` and by whoever puts parts together.
    """

    name: str
    axes: tuple[Axis, ...]
    part: str = ""
    kind: tuple[Any, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(prod(factor.size for factor in axis) for axis in self.axes)

    @property
    def size(self) -> int:
        return prod([factor.size for axis in self.axes for factor in axis])


class Product(NamedTuple):
    """Multiply-accumulates of one kind: a linear `map`, a `mix` of tokens, or a `kernel` slid over them."""

    kind: Literal["map", "mix", "kernel"]
    sizes: tuple[int, ...]

    @property
    def macs(self) -> int:
        return prod(self.sizes)


def under(prefix: str, tensors: Iterable[Tensor], kind: tuple[Any, ...] = ()) -> Iterator[Tensor]:
    """Put tensors below a path: it comes before their names and parts, and `kind` before their kinds."""
    for tensor in tensors:
        part = f"{prefix}.{tensor.part}" if tensor.part else prefix
        yield Tensor(f"{prefix}.{tensor.name}", tensor.axes, part, (*kind, *tensor.kind))


def marked(tensors: Iterable[Tensor], part: str = "", kind: tuple[Any, ...] = ()) -> Iterator[Tensor]:
    """Say which part tensors belong to, and put `kind` before their kinds; their names stay."""
    for tensor in tensors:
        yield Tensor(tensor.name, tensor.axes, part or tensor.part, (*kind, *tensor.kind))


def linear(name: str, inputs: Axis, outputs: Axis, bias: bool = True) -> Iterator[Tensor]:
    """Declare a linear map as torch holds it: outputs by inputs, and a bias for each output."""
    yield Tensor(f"{name}.weight", (outputs, inputs))
    if bias:
        yield Tensor(f"{name}.bias", (outputs,))


def norm(name: str, width: Factor) -> Iterator[Tensor]:
    """Declare a layer norm: a weight and a bias for each number."""
    yield Tensor(f"{name}.weight", ((width,),))
    yield Tensor(f"{name}.bias", ((width,),))
