"""Computation graphs of layers and designs, and digests that only isomorphic designs share."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise

from formwright.arch.card import Card
from formwright.arch.compute_blocks import BlockKind, ComputeBlock, Drawing, Edge
from formwright.arch.layers import Block, Branch, Cell, Layer, Stack
from formwright.arch.operations.base import node_label
from formwright.arch.ops import Identity, OpGraph
from formwright.core import codec
from formwright.core.remember import remember

ENTRY = 0
_JOINTS = {"add": BlockKind.ADD, "multiply": BlockKind.MULTIPLY, "concatenate": BlockKind.CONCATENATE}


@dataclass(frozen=True)
class Segment:
    """The graph of a layer; node 0 is the output of the layer below and the last node is the output.

    Every node has a label, and every one but node 0 a compute block. `reads` lists the nodes that also read the
    encoder, with the number of its last layers that they see.
    """

    labels: tuple[str, ...]
    edges: tuple[Edge, ...]
    reads: tuple[tuple[int, int], ...]
    blocks: tuple[ComputeBlock, ...]


@remember
def segment(layer: Layer) -> Segment:
    drawing = Drawing()
    if isinstance(layer, Block):
        _draw_block(layer, drawing)
    else:
        _draw_cell(layer, drawing)
    return Segment(tuple(drawing.labels), tuple(drawing.edges), tuple(drawing.reads), tuple(drawing.blocks))


def _draw_block(block: Block, drawing: Drawing) -> None:
    mixers = [part for part in (block.mixer, block.cross) if part is not None and not isinstance(part, Identity)]
    parts = [partial(part.draw, drawing, block.width) for part in mixers]
    if block.feed_forward:
        parts.append(partial(_feed_forward, block, drawing))
    state, pre = ENTRY, block.norm == "pre"
    joint = ComputeBlock(BlockKind.ADD if pre else BlockKind.ADD_NORM)
    for draw in parts:
        entry = drawing.node(f"norm {block.width}", ComputeBlock(BlockKind.NORM), state) if pre else state
        state = drawing.node(f"{'add' if pre else 'add norm'} {block.width}", joint, state, *draw(entry))


def _feed_forward(block: Block, drawing: Drawing, entry: int) -> list[int]:
    for width, hidden in pairwise((block.width, *block.feed_forward)):
        compute = ComputeBlock(BlockKind.FEED_FORWARD, (hidden,), block.activation)
        entry = drawing.node(f"feed-forward {width}>{hidden} {block.activation}", compute, entry)
    return [entry]


def _draw_cell(cell: Cell, drawing: Drawing) -> None:
    states = [ENTRY]
    for junction in cell.junctions:
        ends = [_draw_branch(cell, branch, drawing, states) for branch in junction.branches]
        if len(ends) > 1:
            label, ordered = f"{junction.combine} {junction.width}", junction.combine == "concatenate"
            ends = [drawing.node(label, ComputeBlock(_JOINTS[junction.combine]), *ends, ordered=ordered)]
        states += ends


def _draw_branch(cell: Cell, branch: Branch, drawing: Drawing, states: list[int]) -> int:
    operation, width = branch.operation, cell.state_widths[branch.input]
    if isinstance(operation, Identity) and not branch.norm and branch.activation is None:
        return states[branch.input]
    details = f"{'norm' if branch.norm else 'no norm'} {branch.activation or 'no activation'}"
    label = f"{node_label(codec.write(operation), width, branch.width)} {details}"
    node = drawing.node(label, operation.compute_block(width, branch.width, details), states[branch.input])
    drawing.read([node], operation.memory_layers)
    return node


@dataclass(frozen=True)
class Graph:
    """Labelled nodes and edges (from, to, place of the operand) of a design, in topological order."""

    labels: tuple[str, ...]
    edges: tuple[Edge, ...]


def graph_of(card: Card) -> Graph:
    """Draw the computation graph of a design: a node for each input, head, feed-forward layer, addition and output.

    Op graphs are drawn simplified, so that formulas that are equal by algebra are one graph.
    """
    labels: list[str] = []
    edges: list[Edge] = []
    memory: list[int] = []
    for stack in card.stacks:
        memory = _add_stack(stack, stack is card.decoder, memory, labels, edges)
    labels.append(_output_label(card))
    edges.append((memory[-1], len(labels) - 1, 0))
    return Graph(tuple(labels), tuple(edges))


def _add_stack(stack: Stack, decoder: bool, memory: list[int], labels: list[str], edges: list[Edge]) -> list[int]:
    """Append a stack's nodes and edges; return the node at which each of its layers ends."""
    labels.append(_input_label(decoder, stack))
    end = len(labels) - 1
    ends = []
    for layer in stack.layers:
        part, shift = segment(layer), len(labels) - 1
        if len(part.labels) > 1:
            labels += part.labels[1:]
            edges += _placed(layer, end, shift)
            if part.reads:
                edges += [(below, node + shift, 1) for node, last in part.reads for below in memory[-last:]]
            end = len(labels) - 1
        ends.append(end)
    return ends


@lru_cache(maxsize=1 << 14)
def _placed(layer: Layer, below: int, shift: int) -> list[Edge]:
    """Renumber the edges of a layer for the whole graph, its entry being node `below`."""
    edges = segment(layer).edges
    return [(source + shift if source else below, target + shift, place) for source, target, place in edges]


def _input_label(decoder: bool, stack: Stack) -> str:
    ends = f"causal={stack.causal} final_norm={stack.final_norm}"
    if stack.joints != "unequal" or stack.out is not None:  # left out otherwise, so that older digests stay
        ends += f" joints={stack.joints} out={stack.out}"
    return f"{'decoder' if decoder else 'encoder'} {codec.text(stack.embedding)} {ends}"


def _output_label(card: Card) -> str:
    return f"output pooler={card.pooler} classes={card.classes} share_embedding={card.share_embedding}"


def graph_digest(card: Card) -> str:
    """Return a hexadecimal digest that only designs with isomorphic computation graphs share."""
    parts = []
    for stack in card.stacks:
        parts.append(_input_label(stack is card.decoder, stack).encode())
        parts += [piece for layer in stack.layers for piece in pieces(layer)]
    if card.encoder is not None and card.decoder is not None:
        parts.append(repr(_memory_joints(card.encoder, card.decoder)).encode())
    parts.append(_output_label(card).encode())
    return hashlib.sha256(b"".join(parts)).hexdigest()


@remember
def plain_digest(card: Card) -> str:
    """Return the digest of the graph of a card with formulas; without formulas it is the card's own.

    In that graph formulas are simplified, and Q, K, V and P are unnamed linear maps of one input: exchanging them gives
    no new design, although with shared weights they start from different values.
    """
    return graph_digest(card) if has_formulas(card) else card.digest


def has_formulas(card: Card) -> bool:
    blocks = (layer for stack in card.stacks for layer in stack.layers if isinstance(layer, Block))
    return any(isinstance(block.mixer, OpGraph) for block in blocks)


def _memory_joints(encoder: Stack, decoder: Stack) -> list[int]:
    """Return, for each of the last encoder layers that the decoder reads, the number of pieces above it."""
    last = max((count for layer in decoder.layers for _, count in segment(layer).reads), default=0)
    above, joints = 0, []
    for layer in encoder.layers[: -last - 1 : -1]:
        joints.append(above)
        above += len(pieces(layer))
    return joints


@remember
def pieces(layer: Layer) -> tuple[bytes, ...]:
    """Cut a layer's graph wherever every path passes one node, and give the certificate of each piece.

    The cuts depend on the graph alone, so two stacks are isomorphic just when their pieces agree one by one, however
    their nodes are divided into layers.
    """
    whole = segment(layer)
    jumps = [0] * len(whole.labels)
    for source, target, _ in whole.edges:
        for node in range(source + 1, target):
            jumps[node] += 1
    certificates = []
    for start, end in pairwise(node for node, over in enumerate(jumps) if over == 0):
        inside = [edge for edge in whole.edges if start < edge[1] <= end]
        edges = [(source - start, target - start, place) for source, target, place in inside]
        certificates.append(certificate(["", *whole.labels[start + 1 : end + 1]], edges))
    return tuple(certificates)


_Neighbours = list[tuple[list[tuple[int, int]], list[tuple[int, int]]]]  # for each node: the places of its edges and
# the nodes at their other ends, those that it reads and those that read it


def certificate(labels: Sequence[str], edges: Sequence[Edge]) -> bytes:
    """Return a digest of a directed multigraph: equal for isomorphic graphs and for no others.

    Colours are refined from labels and neighbours until stable. Where equal colours remain, one node at a time is
    singled out and the smallest order wins, so the result is exact and not merely a good hash.
    """
    neighbours: _Neighbours = [([], []) for _ in labels]
    for source, target, place in edges:
        neighbours[target][0].append((place, source))
        neighbours[source][1].append((place, target))
    for inward, outward in neighbours:
        inward.sort()
        outward.sort()
    names = sorted(set(labels))
    order = _smallest([bisect_left(names, label) for label in labels], neighbours, edges)
    text = repr(([labels[node] for node in order], _numbered(order, edges)))
    return hashlib.sha256(text.encode()).digest()


def _numbered(order: list[int], edges: Sequence[Edge]) -> tuple[Edge, ...]:
    rank = {node: position for position, node in enumerate(order)}
    return tuple(sorted((rank[source], rank[target], place) for source, target, place in edges))


def _smallest(colours: list[int], neighbours: _Neighbours, edges: Sequence[Edge]) -> list[int]:
    """Order the nodes so that their renumbered edges are smallest among all orders that the colours allow."""
    colours = _refined(colours, neighbours)
    tied = _first_tie(colours)
    if not tied:
        return _by_colour(colours)
    if all(neighbours[node] == neighbours[tied[0]] for node in tied):
        # interchangeable nodes give the same certificate in whichever order they come
        apart = [len(tied) * colour for colour in colours]
        for position, node in enumerate(tied):
            apart[node] += position
        return _smallest(apart, neighbours, edges)
    starts: dict[tuple[Edge, ...], list[int]] = {}
    for node in tied:
        # two starts that meet in one graph are mirror images of each other, and so is all that follows from them
        start = any_order = _singled_out(colours, node)
        while equals := _first_tie(any_order := _refined(any_order, neighbours)):
            any_order = _singled_out(any_order, equals[0])
        starts.setdefault(_numbered(_by_colour(any_order), edges), start)
    orders = [_smallest(start, neighbours, edges) for start in starts.values()]
    return min(orders, key=lambda order: _numbered(order, edges))


def _by_colour(colours: list[int]) -> list[int]:
    return sorted(range(len(colours)), key=colours.__getitem__)


def _refined(colours: list[int], neighbours: _Neighbours) -> list[int]:
    while True:
        signatures = [
            (colour, *(sorted((place, colours[other]) for place, other in side) for side in sides))
            for colour, sides in zip(colours, neighbours, strict=True)
        ]
        ranked = sorted(signatures)
        finer = [bisect_left(ranked, signature) for signature in signatures]
        if len(set(finer)) == len(set(colours)):
            return finer
        colours = finer


def _first_tie(colours: list[int]) -> list[int]:
    first = min((colour for colour, nodes in Counter(colours).items() if nodes > 1), default=None)
    return [] if first is None else [node for node, colour in enumerate(colours) if colour == first]


def _singled_out(colours: list[int], node: int) -> list[int]:
    return [2 * colour + (other != node) for other, colour in enumerate(colours)]
