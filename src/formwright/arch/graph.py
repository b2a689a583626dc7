"""Computation graphs of layers and designs, and digests that only isomorphic designs share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from formwright.arch.canonical import Edge, certificate
from formwright.arch.card import Card
from formwright.arch.layers import Block, Branch, Cell, Embedding, Layer, Stack
from formwright.arch.ops import Attention, CrossAttention, DynamicConvolution, Identity, Operation, OpGraph, Transform
from formwright.arch.primitives import COMMUTATIVE, Term
from formwright.arch.simplify import representative
from formwright.core import codec
from formwright.core.codec import text
from formwright.core.remember import remember

ENTRY = 0


@dataclass(frozen=True)
class Segment:
    """Labelled nodes and edges; node 0 is the output of the layer below and the last node is the output.

    `reads` lists the nodes that also read the encoder, with the number of its last layers that they see.
    """

    labels: tuple[str, ...]
    edges: tuple[Edge, ...]
    reads: tuple[tuple[int, int], ...] = ()


class _Drawing:
    """Collect nodes and edges in topological order."""

    def __init__(self) -> None:
        self.labels = [""]
        self.edges: list[Edge] = []
        self.reads: list[tuple[int, int]] = []

    def node(self, label: str, *sources: int, ordered: bool = False) -> int:
        """Add a node that reads `sources`; if `ordered`, the order of the sources matters."""
        self.labels.append(label)
        here = len(self.labels) - 1
        self.edges += [(source, here, place if ordered else 0) for place, source in enumerate(sources)]
        return here

    def segment(self) -> Segment:
        return Segment(tuple(self.labels), tuple(self.edges), tuple(self.reads))


@remember
def segment(layer: Layer) -> Segment:
    drawing = _Drawing()
    if isinstance(layer, Block):
        _draw_block(layer, drawing)
    else:
        _draw_cell(layer, drawing)
    return drawing.segment()


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
    cuts = [node for node, over in enumerate(jumps) if over == 0]
    return tuple(_piece(whole, start, end) for start, end in pairwise(cuts))


def _piece(whole: Segment, start: int, end: int) -> bytes:
    labels = ["", *whole.labels[start + 1 : end + 1]]
    edges = [(source - start, target - start, place) for source, target, place in whole.edges if start < target <= end]
    return certificate(labels, edges)


def _draw_block(block: Block, drawing: _Drawing) -> None:
    state = ENTRY
    if not isinstance(block.mixer, Identity):
        state = _residual(block, drawing, state, lambda entry: _mix(block.mixer, block.width, drawing, entry))
    if block.cross is not None:
        cross = block.cross
        state = _residual(block, drawing, state, lambda entry: _mix(cross, block.width, drawing, entry))
    if block.feed_forward:
        _residual(block, drawing, state, lambda entry: [_feed_forward(block, drawing, entry)])


def _residual(block: Block, drawing: _Drawing, entry: int, part: Callable[[int], list[int]]) -> int:
    if block.norm == "post":
        return drawing.node(f"add norm {block.width}", entry, *part(entry))
    return drawing.node(f"add {block.width}", entry, *part(drawing.node(f"norm {block.width}", entry)))


def _feed_forward(block: Block, drawing: _Drawing, entry: int) -> int:
    width = block.width
    for hidden in block.feed_forward:
        entry = drawing.node(f"feed-forward {width}>{hidden} {block.activation}", entry)
        width = hidden
    return entry


def _mix(operation: Operation, width: int, drawing: _Drawing, entry: int) -> list[int]:
    """Add an operation, one node for each of its parallel heads, and return its last nodes."""
    if isinstance(operation, OpGraph):
        return [_draw_term(operation, width, drawing, entry)]
    heads, one = _split_heads(operation)
    nodes = [drawing.node(_label(one, width, width), entry) for _ in range(heads)]
    if isinstance(operation, CrossAttention):
        drawing.reads += [(node, operation.layers) for node in nodes]
    return nodes


def _split_heads(operation: Operation) -> tuple[int, dict[str, Any]]:
    data = codec.write(operation)
    if isinstance(operation, Attention | CrossAttention | DynamicConvolution):
        return data.pop("heads"), data
    if isinstance(operation, Transform) and operation.relative is not None:
        return data["relative"].pop("heads"), data
    return 1, data


def _label(data: dict[str, Any], width: int, output: int) -> str:
    details = {name: item for name, item in data.items() if name != "type"}
    return f"{data['type']} {width}>{output} {codec.canonical(details)}"


def _draw_term(operation: OpGraph, width: int, drawing: _Drawing, entry: int) -> int:
    # Q, K, V and P are all linear maps of the same input, so their letters are names and not labels; formulas that are
    # equal by algebra are one graph
    inner = f"{operation.heads}x{operation.head_width}"
    done: dict[Term, int] = {}

    def draw(term: Term) -> int:
        if term not in done:
            if isinstance(term, str):
                done[term] = drawing.node(f"project {width}>{inner}", entry)
            else:
                name = str(term[0])
                operands = [draw(operand) for operand in term[1:]]
                done[term] = drawing.node(f"{name} {inner}", *operands, ordered=name not in COMMUTATIVE)
        return done[term]

    return drawing.node(f"project {inner}>{width}", draw(representative(operation.term)))


def _draw_cell(cell: Cell, drawing: _Drawing) -> None:
    states = [ENTRY]
    for junction in cell.junctions:
        ends = [_draw_branch(cell, branch, drawing, states) for branch in junction.branches]
        if len(ends) == 1:
            states.append(ends[0])
        else:
            ordered = junction.combine == "concatenate"
            states.append(drawing.node(f"{junction.combine} {junction.width}", *ends, ordered=ordered))


def _draw_branch(cell: Cell, branch: Branch, drawing: _Drawing, states: list[int]) -> int:
    plain = isinstance(branch.operation, Identity) and not branch.norm and branch.activation is None
    if plain:
        return states[branch.input]
    label = _label(codec.write(branch.operation), cell.state_widths[branch.input], branch.width)
    details = f"{'norm' if branch.norm else 'no norm'} {branch.activation or 'no activation'}"
    node = drawing.node(f"{label} {details}", states[branch.input])
    if isinstance(branch.operation, CrossAttention):
        drawing.reads.append((node, branch.operation.layers))
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
    labels.append(_output_label(card.pooler, card.classes, card.share_embedding))
    edges.append((memory[-1], len(labels) - 1, 0))
    return Graph(tuple(labels), tuple(edges))


def graph_digest(card: Card) -> str:
    """Return a hexadecimal digest that only designs with isomorphic computation graphs share."""
    parts = []
    for stack in card.stacks:
        parts.append(_input_label(stack is card.decoder, stack.embedding, stack.causal, stack.final_norm).encode())
        parts += [_trace(layer) for layer in stack.layers]
    if card.encoder is not None and card.decoder is not None:
        parts.append(repr(_memory_joints(card.encoder, card.decoder)).encode())
    parts.append(_output_label(card.pooler, card.classes, card.share_embedding).encode())
    return hashlib.sha256(b"".join(parts)).hexdigest()


@remember
def _trace(layer: Layer) -> bytes:
    return b"".join(pieces(layer))


def _add_stack(stack: Stack, decoder: bool, memory: list[int], labels: list[str], edges: list[Edge]) -> list[int]:
    """Append a stack's nodes and edges; return the node at which each of its layers ends."""
    labels.append(_input_label(decoder, stack.embedding, stack.causal, stack.final_norm))
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


def _memory_joints(encoder: Stack, decoder: Stack) -> list[int]:
    """Return, for each of the last encoder layers that the decoder reads, the number of pieces above it."""
    last = max((count for layer in decoder.layers for _, count in segment(layer).reads), default=0)
    above, joints = 0, []
    for layer in encoder.layers[: -last - 1 : -1]:
        joints.append(above)
        above += len(pieces(layer))
    return joints


@lru_cache(maxsize=1 << 10)
def _input_label(decoder: bool, embedding: Embedding, causal: bool, final_norm: bool) -> str:
    return f"{'decoder' if decoder else 'encoder'} {text(embedding)} causal={causal} final_norm={final_norm}"


@lru_cache(maxsize=1 << 10)
def _output_label(pooler: bool, classes: int, share_embedding: bool) -> str:
    return f"output pooler={pooler} classes={classes} share_embedding={share_embedding}"


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
