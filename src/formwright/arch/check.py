"""Validation of a design beyond its JSON schema: sizes that must agree and parts that must be reachable."""

from collections.abc import Iterator
from dataclasses import dataclass

from formwright.arch.layers import Block, Branch, Cell, Embedding, Layer, PatchEmbedding, Stack
from formwright.arch.ops import (
    NEVER_CAUSAL,
    Attention,
    CrossAttention,
    DynamicConvolution,
    Identity,
    LightweightConvolution,
    Operation,
    Transform,
)
from formwright.core.codec import range_faults
from formwright.core.errors import Fault
from formwright.core.remember import remember

_MOST_PARTS = 64  # of one layer, each a node of its graph; comparing larger symmetric graphs takes too long


@dataclass(frozen=True)
class _Facts:
    """What is known of a layer independently of its stack."""

    faults: tuple[Fault, ...]
    relative: bool
    grid: bool  # some relative positions have two axes
    sees_all: tuple[tuple[str, str], ...]  # operations that cannot be causal: their place and type
    reads: tuple[tuple[str, int], ...]  # cross-attention: its place, and how many encoder layers it reads
    empty: bool  # the layer returns its input unchanged


def stack_faults(stack: Stack, memory: Stack | None) -> list[Fault]:
    """List the faults of a stack; `memory` is the encoder that a decoder may attend to."""
    if not stack.layers:
        return [Fault("layers", "is empty; a stack needs at least one layer")]
    facts = [_facts(layer) for layer in stack.layers]
    faults = _embedding_faults(stack, facts)
    for index, fact in enumerate(facts):
        if fact.faults or fact.reads or fact.empty or (fact.sees_all and stack.causal):
            found = [*fact.faults]
            for place, kind in fact.sees_all if stack.causal else ():
                found.append(Fault(place, f"is {kind}, which reads the whole sequence and cannot be causal"))
            found += _memory_faults(fact, memory)
            below = stack.layers[index - 1].output_width if index else stack.embedding.width
            if fact.empty and (width := stack.layers[index].width) != below:
                found.append(Fault("width", f"is {width}, but a layer without parts keeps the width {below} below it"))
            faults += [Fault(f"layers[{index}].{fault.where}", fault.what) for fault in found]
    return faults


@remember
def _facts(layer: Layer) -> _Facts:
    found = list(operations(layer))
    faults = list(range_faults(layer))
    if not faults:
        faults = list(_block_faults(layer) if isinstance(layer, Block) else _cell_faults(layer))
    return _Facts(
        faults=tuple(faults),
        relative=any(has_relative(operation) for _, operation in found),
        grid=any(
            operation.relative is not None and operation.relative.axes == 2
            for _, operation in found
            if isinstance(operation, Attention | DynamicConvolution)
        ),
        sees_all=tuple((place, operation.TYPE) for place, operation in found if isinstance(operation, NEVER_CAUSAL)),
        reads=tuple((place, operation.layers) for place, operation in found if isinstance(operation, CrossAttention)),
        empty=isinstance(layer, Block) and layer.empty,
    )


def operations(layer: Layer) -> Iterator[tuple[str, Operation]]:
    if isinstance(layer, Block):
        yield "mixer", layer.mixer
        if layer.cross is not None:
            yield "cross", layer.cross
        return
    for place, branch in branches(layer):
        yield f"{place}.operation", branch.operation


def branches(cell: Cell) -> Iterator[tuple[str, Branch]]:
    for index, junction in enumerate(cell.junctions):
        yield f"junctions[{index}].left", junction.left
        if junction.right is not None:
            yield f"junctions[{index}].right", junction.right


def has_relative(operation: Operation) -> bool:
    return isinstance(operation, Attention | Transform | DynamicConvolution) and operation.relative is not None


@remember
def _sizes(embedding: Embedding) -> tuple[Fault, ...]:
    return tuple(range_faults(embedding))


def _embedding_faults(stack: Stack, facts: list[_Facts]) -> list[Fault]:
    embedding, first = stack.embedding, stack.layers[0]
    # lists, because every card that is built passes here and generators are twice as slow on a few layers
    relative, grid = True in [fact.relative for fact in facts], True in [fact.grid for fact in facts]
    faults = [Fault(f"embedding.{fault.where}", fault.what) for fault in _sizes(embedding)]
    if faults:
        return faults
    if embedding.width != first.width:
        faults.append(Fault("embedding.width", f"is {embedding.width}, but the first layer is {first.width} wide"))
    if isinstance(embedding, PatchEmbedding) and embedding.image % embedding.patch:
        what = f"is {embedding.patch}, which does not divide the image of {embedding.image}"
        faults.append(Fault("embedding.patch", what))
    if grid and not isinstance(embedding, PatchEmbedding):
        what = "has one axis, but a layer has relative positions in two axes, which need patches"
        faults.append(Fault("embedding", what))
    if embedding.positions == "relative" and not relative:
        faults.append(Fault("embedding.positions", "is 'relative', but no layer has relative positions; write 'none'"))
    if embedding.positions == "none" and relative:
        faults.append(Fault("embedding.positions", "is 'none', but a layer has relative positions; write 'relative'"))
    return faults


def _block_faults(block: Block) -> Iterator[Fault]:
    mixer = block.mixer
    if len(block.feed_forward) > _MOST_PARTS:
        yield Fault("feed_forward", f"has {len(block.feed_forward)} widths; at most {_MOST_PARTS} are allowed")
    if isinstance(mixer, Transform) and mixer.relative is not None:
        inner = mixer.relative.heads * mixer.relative.head_width
        if inner != block.width:
            what = f"is {inner} wide (heads x head width) and is added to a width of {block.width}"
            yield Fault("mixer.relative", what)
    relative = mixer.relative if isinstance(mixer, DynamicConvolution) else None
    if relative is not None and (relative.axes != 1 or relative.values):
        yield Fault("mixer.relative", "must have one axis and no values in a convolution")
    if isinstance(mixer, LightweightConvolution) and block.width % mixer.heads:
        yield Fault("mixer.heads", f"is {mixer.heads}, which does not divide the width {block.width}")


def _cell_faults(cell: Cell) -> Iterator[Fault]:
    if not cell.junctions:
        yield Fault("junctions", "is empty; a cell needs at least one junction")
        return
    states = len(cell.junctions)
    if states > _MOST_PARTS:
        yield Fault("junctions", f"has {states} junctions; at most {_MOST_PARTS} are allowed")
        return
    for index, junction in enumerate(cell.junctions):
        for side, branch in zip(("left", "right"), junction.branches, strict=False):
            for fault in _branch_faults(index, branch, cell):
                yield Fault(f"junctions[{index}].{side}.{fault.where}", fault.what)
    used = {branch.input for _, branch in branches(cell)}
    for index in range(1, states):
        if index not in used:
            yield Fault(f"junctions[{index - 1}]", "is never used; leave it out")


def _branch_faults(index: int, branch: Branch, cell: Cell) -> Iterator[Fault]:
    if branch.input > index:
        yield Fault("input", f"is {branch.input}; only states 0 to {index} exist before this junction")
        return
    entry, operation = cell.state_widths[branch.input], branch.operation
    if isinstance(operation, Identity) and branch.width != entry:
        yield Fault("width", f"is {branch.width}, but identity keeps the width {entry} of state {branch.input}")
    if isinstance(operation, LightweightConvolution):
        if branch.width % operation.heads:
            yield Fault("operation.heads", f"is {operation.heads}, which does not divide {branch.width}")
        if not operation.gated and branch.width != entry:
            yield Fault("width", f"is {branch.width}, but without a gate the convolution keeps the width {entry}")


def _memory_faults(facts: _Facts, memory: Stack | None) -> Iterator[Fault]:
    for place, layers in facts.reads:
        if memory is None:
            yield Fault(place, "attends to an encoder, but the design has none")
        elif layers > len(memory.layers):
            yield Fault(f"{place}.layers", f"is {layers}, but the encoder has {len(memory.layers)} layers")
        elif len({below.output_width for below in memory.layers[-layers:]}) > 1:
            yield Fault(f"{place}.layers", "reaches encoder layers of unequal width")
