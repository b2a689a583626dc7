"""Structure of a design: blocks, cells, and stacks of them, with the tensors and products of each.

Tensors come in the order of torch's `named_parameters`; `memory` is the width of the encoder that a layer may read, and
where products are declared also the number of its tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Literal

from formwright.arch.embeddings import Embedding
from formwright.arch.ops import BranchOperation, CrossOperation, Identity, Mixer, Operation
from formwright.arch.tensors import MEMORY, STREAM, Factor, Product, Tensor, linear, marked, norm, under
from formwright.core.codec import Natural, Positive
from formwright.core.remember import remember, remembers

Activation = Literal["gelu", "relu", "swish", "leaky-relu", "squared-relu"]


@remembers
@dataclass(frozen=True)
class Block:
    """The ordinary layer: a token mixer, in a decoder cross-attention, then a stack of feed-forward widths.

    Each part is added to its input; layer norm comes before the part (`pre`) or after the addition (`post`). An
    `identity` mixer, no cross-attention and an empty feed-forward stack each mean that the part, its addition and its
    norm do not exist.
    """

    TYPE: ClassVar[str] = "block"
    width: Positive
    mixer: Mixer
    feed_forward: tuple[Positive, ...] = ()
    activation: Activation = "gelu"
    norm: Literal["pre", "post"] = "post"
    cross: CrossOperation | None = None

    @property
    def empty(self) -> bool:
        return isinstance(self.mixer, Identity) and self.cross is None and not self.feed_forward

    @property
    def output_width(self) -> int:
        return self.width

    @property
    def operations(self) -> Iterator[tuple[str, Operation]]:
        """List the operations of the layer and their places."""
        yield "mixer", self.mixer
        if self.cross is not None:
            yield "cross", self.cross

    @property
    def shaped_operations(self) -> Iterator[tuple[Operation, int, int]]:
        """List the operations of the layer with the widths of what each reads and gives."""
        return ((operation, self.width, self.width) for _, operation in self.operations)

    def tensors(self, memory: int) -> Iterator[Tensor]:
        stream = Factor(self.width, STREAM)
        for part, operation in self.operations:
            if not isinstance(operation, Identity):
                tensors = operation.tensors(stream, stream, Factor(memory, MEMORY))
                yield from self._part(part, tensors, (operation.TYPE, *operation.kind(self.width)))
        if self.feed_forward:
            yield from self._part("feed_forward", self._maps(stream), (len(self.feed_forward), self.activation))

    def _part(self, part: str, tensors: Iterator[Tensor], kind: tuple[Any, ...]) -> Iterator[Tensor]:
        """Put the tensors of a part, and the norm that comes with it, below its name."""
        kind = (self.TYPE, self.norm, *kind)
        yield from under(part, tensors, kind)
        yield from marked(norm(f"{part}_norm", Factor(self.width, STREAM)), part, kind)

    def _maps(self, stream: Factor) -> Iterator[Tensor]:
        channels = [Factor(width, f"channels {index}") for index, width in enumerate(self.feed_forward)]
        for index, (below, above) in enumerate(pairwise([stream, *channels, stream])):
            yield from linear(f"maps.{index}", (below,), (above,))

    def products(self, tokens: int, memory: tuple[int, int]) -> Iterator[Product]:
        for operation, width, output in self.shaped_operations:
            yield from operation.products(width, output, tokens, memory)
        if self.feed_forward:
            for below, above in pairwise((self.width, *self.feed_forward, self.width)):
                yield Product("map", (tokens, below, above))


@dataclass(frozen=True)
class Branch:
    """One side of a junction: read state `input`, normalise, apply the operation to reach `width`, activate.

    State 0 is the cell's input and state i the output of its i-th junction.
    """

    input: Natural
    operation: BranchOperation
    width: Positive
    norm: bool = False
    activation: Activation | None = None


@remembers
@dataclass(frozen=True)
class Junction:
    """Two branches and how they are joined; the narrower one is padded, with 0 for `add` and with 1 for `multiply`.

    Branches that normalise the same state share that norm.
    """

    left: Branch
    right: Branch | None = None
    combine: Literal["add", "concatenate", "multiply"] = "add"

    @property
    def branches(self) -> tuple[Branch, ...]:
        return (self.left,) if self.right is None else (self.left, self.right)

    @property
    def normed_states(self) -> frozenset[int]:
        return frozenset(branch.input for branch in self.branches if branch.norm)

    @property
    @remember
    def width(self) -> int:
        widths = [branch.width for branch in self.branches]
        return sum(widths) if self.combine == "concatenate" else max(widths)

    def tensors(self, states: tuple[Factor, ...], output: str, memory: int) -> Iterator[Tensor]:
        """Declare the tensors of the branches, which read earlier `states` and write to the group `output`."""
        for state in sorted(self.normed_states):
            yield from norm(f"norms.{state}", states[state])
        for index, branch in enumerate(self.branches):
            written = Factor(branch.width, f"{output}.{index}" if self.combine == "concatenate" else output)
            tensors = branch.operation.tensors(states[branch.input], written, Factor(memory, MEMORY))
            kind = (branch.operation.TYPE, *branch.operation.kind(branch.width))
            yield from under(f"operations.{index}", tensors, kind)


@remembers
@dataclass(frozen=True)
class Cell:
    """A small graph of junctions, each reading earlier states; the last junction is the cell's output."""

    TYPE: ClassVar[str] = "cell"
    width: Positive
    junctions: tuple[Junction, ...]

    @property
    @remember
    def state_widths(self) -> tuple[int, ...]:
        """List the widths of the cell's states: its input, then each junction's output."""
        return (self.width, *(junction.width for junction in self.junctions))

    @property
    def output_width(self) -> int:
        return self.state_widths[-1]

    @property
    def branches(self) -> Iterator[tuple[str, Branch]]:
        """List the branches and their places."""
        for index, junction in enumerate(self.junctions):
            for side, branch in zip(("left", "right"), junction.branches, strict=False):
                yield f"junctions[{index}].{side}", branch

    @property
    def operations(self) -> Iterator[tuple[str, Operation]]:
        """List the operations of the layer and their places."""
        return ((f"{place}.operation", branch.operation) for place, branch in self.branches)

    @property
    def shaped_operations(self) -> Iterator[tuple[Operation, int, int]]:
        """List the operations of the layer with the widths of what each reads and gives."""
        widths = self.state_widths
        return ((branch.operation, widths[branch.input], branch.width) for _, branch in self.branches)

    def tensors(self, memory: int) -> Iterator[Tensor]:
        last = len(self.junctions)
        groups = [STREAM if index in (0, last) else f"state {index}" for index in range(last + 1)]
        states = tuple(Factor(width, group) for width, group in zip(self.state_widths, groups, strict=True))
        for index, junction in enumerate(self.junctions):
            tensors = junction.tensors(states, groups[index + 1], memory)
            yield from under(f"junctions.{index}", tensors, (self.TYPE,))

    def products(self, tokens: int, memory: tuple[int, int]) -> Iterator[Product]:
        for operation, width, output in self.shaped_operations:
            yield from operation.products(width, output, tokens, memory)


Layer = Block | Cell


@remembers
@dataclass(frozen=True)
class Stack:
    """An embedding and the layers above it; layers of unequal width are joined by a linear projection.

    With `joints="always"` a projection stands before every layer, the first one from the width of the embedding. `out`
    is the width to which the last layer's output is projected.
    """

    embedding: Embedding
    layers: tuple[Layer, ...]
    causal: bool = False
    final_norm: bool = False
    joints: Literal["unequal", "always"] = "unequal"
    out: Positive | None = None

    @property
    @remember
    def projections(self) -> tuple[tuple[int, int, int], ...]:
        """List the projections: the index of the layer above, the width below it and its own.

        The index of one behind the last layer is the number of layers.
        """
        below = [self.embedding.width, *(layer.output_width for layer in self.layers)]
        above = [*(layer.width for layer in self.layers), self.out]
        pairs = enumerate(zip(below, above, strict=True))
        return tuple(
            (index, width, to) for index, (width, to) in pairs if to and (self.joints == "always" or width != to)
        )

    @property
    def output_width(self) -> int:
        return self.out or self.layers[-1].output_width

    @property
    def output_widths(self) -> tuple[int, ...]:
        """List the widths of what every layer gives, the last one as it leaves the stack."""
        return (*(layer.output_width for layer in self.layers[:-1]), self.output_width)

    def tensors(self, memory: int) -> Iterator[Tensor]:
        """Declare the tensors of the stack.

        Where layers have several widths, each has a stream of its own, which the projections join.
        """
        yield from under("embedding", self.embedding.tensors())
        for index, layer in enumerate(self.layers):
            yield from under(f"layers.{index}", layer_tensors(layer, memory))
        for index, below, above in self.projections:
            name = f"projections.{index}"
            yield from marked(linear(name, (Factor(below, STREAM),), (Factor(above, STREAM),)), name)
        if self.final_norm:
            yield from marked(norm("final_norm", Factor(self.output_width, STREAM)), "final_norm")


@lru_cache(maxsize=1 << 10)
def layer_tensors(layer: Layer, memory: int) -> tuple[Tensor, ...]:
    """Return the tensors of a layer, which designs share; `memory` is the encoder's width."""
    return tuple(layer.tensors(memory))
