"""What every operation declares of itself."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from formwright.arch.compute_blocks import BlockKind, ComputeBlock, Drawing
from formwright.arch.tensors import Axis, Factor, Product, Tensor
from formwright.core.codec import Positive, Range, canonical, text, write
from formwright.core.errors import Fault

Place = Literal["mixer", "branch", "cross"]  # of a block, of a junction, and between a decoder's mixer and feed-forward
Heads = Annotated[int, Range(1, 1024)]  # each is a node of the design's graph


class Swatch(NamedTuple):
    """How one kind of operation is drawn; `colour` is a hexadecimal RGB such as `#332288`, `glyph` replaces it."""

    name: str
    colour: str
    glyph: str
    filled: bool = True  # identity is no colour: it leaves its place empty


@dataclass(frozen=True)
class Operation:
    """An operation maps vectors of one width to vectors of another, for a whole sentence at once.

    It says how it is shaped and nothing about its position; `formwright.arch.layers` puts operations into layers. A
    class of its own in `formwright.arch.operations`, or of another package, named in an entry point of the group
    `formwright.operations`, is all that cards, costs, drawings and super-networks need; `MODULE` names what runs it, a
    torch module built from (operation, width, output, width of the encoder, settings). Fields are options of the JSON
    form; a field called `heads` counts the heads. `ELASTIC` names the fields that may be smaller in a smaller design,
    each by itself, with the group of axes that it counts: what is `leading` can be scored, ordered and cut, what is
    `centred` only cut. Check an operation of your own with `formwright.testing.operation_contract`.
    """

    TYPE: ClassVar[str]  # its name in a card
    MODULE: ClassVar[str]  # "package.module:Class"
    PLACES: ClassVar[tuple[Place, ...]]  # where it may stand
    SWATCH: ClassVar[Swatch]
    CAUSAL: ClassVar[bool] = True  # whether it can be kept from reading later tokens
    PARALLEL_HEADS: ClassVar[bool] = False  # whether each head is a node of the design's graph
    INPUT_MAPS: ClassVar[tuple[str, ...]] = ()  # of an attention: its query, key, value and further input maps
    ELASTIC: ClassVar[Mapping[str, str]] = {}  # from a field to the group of axes whose size it is

    def faults(self, width: int, output: int) -> Iterator[Fault]:
        """List what is illegal between these two widths."""
        yield from ()

    def kind(self, output: int) -> tuple[Any, ...]:
        """List what must be equal in two designs for the weights to mean the same; `output` is its output's width."""
        return ()

    @property
    def ordered(self) -> bool:
        """Tell whether the numbers of a vector have a fixed order: it reads them other than by its own weights."""
        return False

    def tensors(self, inputs: Factor, outputs: Factor, memory: Factor) -> Iterator[Tensor]:
        """Declare the tensors, in the order of torch's `named_parameters`; `memory` is the encoder's output."""
        yield from ()

    def products(self, width: int, output: int, tokens: int, memory: tuple[int, int]) -> Iterator[Product]:
        """Declare the products of a forward pass over `tokens`; `memory` is the encoder's width and tokens."""
        yield from ()

    @property
    def memory_layers(self) -> int:
        """Return how many of the last encoder layers it reads."""
        return 0

    @property
    def relative_axes(self) -> int:
        """Return the number of axes of its relative positions; 0 if it has none."""
        relative = getattr(self, "relative", None)
        return 0 if relative is None else int(relative.axes)

    @property
    def head_count(self) -> int:
        """Return the number of heads; 1 if it has none."""
        return int(getattr(self, "heads", 1))

    def with_heads(self, change: Callable[[int], int]) -> "Operation":
        """Return the operation with another number of heads of the same width."""
        return replace(self, heads=change(self.head_count)) if hasattr(self, "heads") else self  # type: ignore[call-arg]

    def describe(self) -> str:
        """Describe the operation in one short phrase, which stands where its colour or its name is seen too."""
        sizes = (f"{name.replace('_', ' ')} {item}" for name, item in vars(self).items() if type(item) is int)
        return listed(self.SWATCH.name, *sizes)

    def describe_alone(self) -> str:
        """Describe the operation where neither its colour nor its name is seen."""
        return self.describe()

    def block(self) -> tuple[int, ...]:
        """Return the kind of compute block that it, or one of its parallel heads, is, and its own sizes."""
        return (BlockKind.OTHER,)

    def parallel(self) -> tuple[int, dict[str, Any]]:
        """Return how many equal nodes it is in the graph of a design, and what describes one of them."""
        data = write(self)
        return (data.pop("heads"), data) if self.PARALLEL_HEADS else (1, data)

    def compute_block(self, width: int, output: int, detail: str = "") -> ComputeBlock:
        kind, *sizes = self.block()
        named = f"{text(self)} {detail}".rstrip() if kind == BlockKind.OTHER else detail
        return ComputeBlock(BlockKind(kind), (width, output, *sizes), named)

    def draw(self, drawing: Drawing, width: int, entry: int) -> list[int]:
        """Add the mixer to a graph, one node for each of its parallel heads, and return its last nodes."""
        count, data = self.parallel()
        label, compute = node_label(data, width, width), self.compute_block(width, width)
        nodes = [drawing.node(label, compute, entry) for _ in range(count)]
        drawing.read(nodes, self.memory_layers)
        return nodes


@dataclass(frozen=True)
class Relative:
    """Trained relative positions: tables of `rows` vectors as wide as a head, shared by the heads.

    `axes` is 1 for text and 2 for images; `values` adds tables for the values to those for the keys.
    """

    rows: Positive
    axes: Literal[1, 2] = 1
    values: bool = False

    def tensors(self, name: str, head_width: int) -> Iterator[Tensor]:
        """Declare the tables: rows lie around distance 0, but on a grid each row has a meaning of its own."""
        rows = Factor(self.rows, cut="centred" if self.axes == 1 else "whole")
        axes = ((Factor(self.axes, cut="whole"),), (rows,), (Factor(head_width, "head width"),))
        yield Tensor(f"{name}.keys", axes)
        if self.values:
            yield Tensor(f"{name}.values", axes)

    def describe(self) -> str:
        return f"relative{' in 2 axes' if self.axes == 2 else ''}{' for keys and values' if self.values else ''}"


def in_heads(heads: int, head_width: int, packed: int = 1) -> Axis:
    """Describe numbers that are ordered head by head; in each head `packed` vectors lie one after the other."""
    between = (Factor(packed, cut="whole"),) if packed > 1 else ()
    return (Factor(heads, "heads"), *between, Factor(head_width, "head width"))


def node_label(data: dict[str, Any], width: int, output: int) -> str:
    """Name a node of a graph by what `write` gave of its operation."""
    details = {name: item for name, item in data.items() if name != "type"}
    return f"{data['type']} {width}>{output} {canonical(details)}"


def heads_in_words(heads: int, head_width: int) -> str:
    return f"{plural(heads, 'head')} x {head_width}"


def plural(count: int, one: str, many: str = "") -> str:
    """Write a number of things."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(*words: str) -> str:
    """Join the words that are not empty by commas."""
    return ", ".join(word for word in words if word)
