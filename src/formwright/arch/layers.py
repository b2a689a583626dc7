"""Structure of a design: embeddings, blocks, cells, and stacks of them."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from formwright.arch.ops import BranchOperation, CrossAttention, Identity, Mixer
from formwright.core.codec import Natural, Positive, Range
from formwright.core.remember import remember, remembers

Activation = Literal["gelu", "relu", "swish", "leaky-relu", "squared-relu"]
Positions = Literal["learned", "sinusoidal", "relative", "none"]


@remembers
@dataclass(frozen=True)
class TokenEmbedding:
    """Token, position and type tables, summed and normalised.

    `relative` positions are tables inside the mixers. When `factorised` is set, the tables are that wide and a linear
    map projects them to `width`.
    """

    TYPE: ClassVar[str] = "tokens"
    vocabulary: Positive
    width: Positive
    factorised: Positive | None = None
    positions: Positions = "learned"
    length: Positive = 512
    types: Natural = 0
    norm: bool = True

    @property
    def table_width(self) -> int:
        return self.factorised or self.width


@remembers
@dataclass(frozen=True)
class PatchEmbedding:
    """Square patches of a square image, each mapped to a vector, behind trained tokens.

    `class_tokens` is the number of trained tokens before the patches: none, a class token, or a class and a
    distillation token.
    """

    TYPE: ClassVar[str] = "patches"
    image: Positive
    patch: Positive
    width: Positive
    channels: Positive = 3
    class_tokens: Annotated[int, Range(0, 2)] = 1
    positions: Positions = "learned"

    @property
    def tokens(self) -> int:
        return (self.image // self.patch) ** 2 + self.class_tokens


@remembers
@dataclass(frozen=True)
class FrameEmbedding:
    """Frames of numbers, such as speech features, normalised and mapped to vectors."""

    TYPE: ClassVar[str] = "frames"
    features: Positive
    width: Positive
    positions: Positions = "learned"
    length: Positive = 512


Embedding = TokenEmbedding | PatchEmbedding | FrameEmbedding


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
    cross: CrossAttention | None = None

    @property
    def empty(self) -> bool:
        return isinstance(self.mixer, Identity) and self.cross is None and not self.feed_forward

    @property
    def output_width(self) -> int:
        return self.width


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


Layer = Block | Cell


@remembers
@dataclass(frozen=True)
class Stack:
    """An embedding and the layers above it; layers of unequal width are joined by a linear projection."""

    embedding: Embedding
    layers: tuple[Layer, ...]
    causal: bool = False
    final_norm: bool = False

    @property
    @remember
    def projections(self) -> tuple[tuple[int, int], ...]:
        """List the (from, to) widths of the projections between layers of unequal width."""
        joints = zip(self.layers, self.layers[1:], strict=False)
        return tuple((below.output_width, above.width) for below, above in joints if below.output_width != above.width)

    @property
    def output_width(self) -> int:
        return self.layers[-1].output_width
