"""Validation of a design beyond its JSON schema: sizes that must agree and parts that must be reachable."""

from collections.abc import Iterator
from dataclasses import dataclass

from formwright.arch.embeddings import Embedding, PatchEmbedding
from formwright.arch.layers import Block, Cell, Layer, Stack
from formwright.arch.ops import Operation, Place
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
    reads: tuple[tuple[str, int], ...]  # operations that read the encoder: their place, and how many of its layers
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
            if fact.empty and stack.joints != "always" and (width := stack.layers[index].width) != below:
                found.append(Fault("width", f"is {width}, but a layer without parts keeps the width {below} below it"))
            faults += [Fault(f"layers[{index}].{fault.where}", fault.what) for fault in found]
    return faults


@remember
def _facts(layer: Layer) -> _Facts:
    faults = [*range_faults(layer)] or [*(_block_faults(layer) if isinstance(layer, Block) else _cell_faults(layer))]
    found = list(layer.operations)
    return _Facts(
        faults=tuple(faults),
        relative=any(operation.relative_axes for _, operation in found),
        grid=any(operation.relative_axes == 2 for _, operation in found),
        sees_all=tuple((place, operation.TYPE) for place, operation in found if not operation.CAUSAL),
        reads=tuple((place, operation.memory_layers) for place, operation in found if operation.memory_layers),
        empty=isinstance(layer, Block) and layer.empty,
    )


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
    if stack.out is not None and stack.out < 1:
        faults.append(Fault("out", f"is {stack.out}; a width must be at least 1"))
    if embedding.width != first.width and stack.joints != "always":
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
    if len(block.feed_forward) > _MOST_PARTS:
        yield Fault("feed_forward", f"has {len(block.feed_forward)} widths; at most {_MOST_PARTS} are allowed")
    yield from _operation_faults("mixer", "mixer", block.mixer, (block.width, block.width))
    if block.cross is not None:
        yield from _operation_faults("cross", "cross", block.cross, (block.width, block.width))


def _operation_faults(where: str, place: Place, operation: Operation, widths: tuple[int, int]) -> Iterator[Fault]:
    if place not in operation.PLACES:
        yield Fault(f"{where}.type", f"is {operation.TYPE}, which cannot be a {place} operation")
        return
    for fault in operation.faults(*widths):
        yield Fault(f"{where}.{fault.where}", fault.what)


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
            where = f"junctions[{index}].{side}"
            if branch.input > index:
                what = f"is {branch.input}; only states 0 to {index} exist before this junction"
                yield Fault(f"{where}.input", what)
            else:
                widths = cell.state_widths[branch.input], branch.width
                yield from _operation_faults(f"{where}.operation", "branch", branch.operation, widths)
    used = {branch.input for _, branch in cell.branches}
    for index in range(1, states):
        if index not in used:
            yield Fault(f"junctions[{index - 1}]", "is never used; leave it out")


def _memory_faults(facts: _Facts, memory: Stack | None) -> Iterator[Fault]:
    for place, layers in facts.reads:
        if memory is None:
            yield Fault(place, "attends to an encoder, but the design has none")
        elif layers > len(memory.layers):
            yield Fault(f"{place}.layers", f"is {layers}, but the encoder has {len(memory.layers)} layers")
        elif len(set(memory.output_widths[-layers:])) > 1:
            yield Fault(f"{place}.layers", "reaches encoder layers of unequal width")
