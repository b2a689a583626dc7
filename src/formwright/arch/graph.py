"""The computation graph of a whole design, and the digest that only isomorphic designs share."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

from formwright.arch.canonical import Edge
from formwright.arch.card import Card
from formwright.arch.layers import Embedding, Layer, Stack
from formwright.arch.segment import pieces, segment
from formwright.core.codec import text
from formwright.core.remember import remember


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
    """Give a hexadecimal digest that is equal for designs with isomorphic computation graphs, and for no others."""
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
    """Give a layer's edges the numbers they have in the whole graph, its entry being node `below`."""
    edges = segment(layer).edges
    return [(source + shift if source else below, target + shift, place) for source, target, place in edges]


def _memory_joints(encoder: Stack, decoder: Stack) -> list[int]:
    """Tell, for each of the last encoder layers that the decoder reads, how many pieces stand above it."""
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
