"""From the layers of a card to the modules that run them."""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.arch.layers import Block, Cell, Junction, Layer
from formwright.arch.ops import Identity, Operation
from formwright.nn.operation_modules import module_class
from formwright.nn.operations.attention import dropout
from formwright.nn.settings import Settings
from formwright.nn.stack_context import StackContext

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "relu": F.relu,
    "swish": F.silu,
    "leaky-relu": F.leaky_relu,
    "squared-relu": lambda x: F.relu(x).square(),
    "tanh": torch.tanh,
}


def operation_module(operation: Operation, width: int, output: int, memory: int, settings: Settings) -> nn.Module:
    """Build the module of an operation from `width` to `output`; `memory` is the encoder's width."""
    return module_class(operation)(operation, width, output, memory, settings)


class FeedForward(nn.Module):
    """Linear maps through a stack of widths and back, with an activation between them."""

    def __init__(self, widths: tuple[int, ...], activation: str) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(below, above) for below, above in pairwise(widths))
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        *hidden, last = self.maps
        for linear in hidden:
            x = self.activation(linear(x))
        return last(x)


class BlockLayer(nn.Module):
    """The ordinary layer: mixer, cross-attention, feed-forward stack, each added to its input and normalised."""

    def __init__(self, block: Block, memory: int, settings: Settings) -> None:
        super().__init__()
        self.before = block.norm == "pre"
        self.mixer: nn.Module | None = None
        self.cross: nn.Module | None = None
        self.feed_forward: nn.Module | None = None
        if not isinstance(block.mixer, Identity):
            self.mixer = operation_module(block.mixer, block.width, block.width, memory, settings)
            self.mixer_norm = nn.LayerNorm(block.width, settings.norm_epsilon)
        if block.cross is not None:
            self.cross = operation_module(block.cross, block.width, block.width, memory, settings)
            self.cross_norm = nn.LayerNorm(block.width, settings.norm_epsilon)
        if block.feed_forward:
            self.feed_forward = FeedForward((block.width, *block.feed_forward, block.width), block.activation)
            self.feed_forward_norm = nn.LayerNorm(block.width, settings.norm_epsilon)
        self.dropout = settings.dropout

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        if self.mixer is not None:
            x = self._added(x, self.mixer, self.mixer_norm, context)
        if self.cross is not None:
            x = self._added(x, self.cross, self.cross_norm, context)
        if self.feed_forward is not None:
            x = self._added(x, self.feed_forward, self.feed_forward_norm, context)
        return x

    def _added(self, x: Tensor, part: nn.Module, norm: nn.Module, context: StackContext) -> Tensor:
        if self.before:
            return x + dropout(part(norm(x), context), self.dropout, self.training)
        return norm(x + dropout(part(x, context), self.dropout, self.training))


class JunctionLayer(nn.Module):
    """Two branches of a cell and how they are joined."""

    def __init__(self, junction: Junction, widths: tuple[int, ...], memory: int, settings: Settings) -> None:
        super().__init__()
        self.junction = junction
        self.norms = nn.ModuleDict(
            {str(state): nn.LayerNorm(widths[state], settings.norm_epsilon) for state in sorted(junction.normed_states)}
        )
        self.operations = nn.ModuleList(
            operation_module(branch.operation, widths[branch.input], branch.width, memory, settings)
            for branch in junction.branches
        )
        self.dropout = settings.dropout

    def forward(self, states: list[Tensor], context: StackContext) -> Tensor:
        normed = {state: norm(states[int(state)]) for state, norm in self.norms.items()}
        results = []
        for branch, operation in zip(self.junction.branches, self.operations, strict=True):
            y = operation(normed[str(branch.input)] if branch.norm else states[branch.input], context)
            y = ACTIVATIONS[branch.activation](y) if branch.activation is not None else y
            results.append(y if isinstance(branch.operation, Identity) else dropout(y, self.dropout, self.training))
        if len(results) == 1:
            return results[0]
        if self.junction.combine == "concatenate":
            return torch.cat(results, -1)
        filler = 0.0 if self.junction.combine == "add" else 1.0
        left, right = (F.pad(result, (0, self.junction.width - result.shape[-1]), value=filler) for result in results)
        return left + right if self.junction.combine == "add" else left * right


class CellLayer(nn.Module):
    """A small graph of junctions; the last one is the output."""

    def __init__(self, cell: Cell, memory: int, settings: Settings) -> None:
        super().__init__()
        self.junctions = nn.ModuleList(
            JunctionLayer(junction, cell.state_widths, memory, settings) for junction in cell.junctions
        )

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        states = [x]
        for junction in self.junctions:
            states.append(junction(states, context))
        return states[-1]


def layer_module(layer: Layer, memory: int, settings: Settings) -> nn.Module:
    """Build the module of a layer; `memory` is the width of the encoder that it may attend to."""
    if isinstance(layer, Block):
        return BlockLayer(layer, memory, settings)
    return CellLayer(layer, memory, settings)
