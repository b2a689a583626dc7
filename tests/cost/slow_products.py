"""Every product of a forward pass spelled out as its sizes: a slow count that shares nothing with the closed forms.

A product is a tuple of sizes whose product is its number of multiply-accumulates: (rows, inner size, columns) for
matrices, (tokens, kernel, channels) for depthwise convolutions.
"""

from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.arch.embeddings import Embedding, PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Cell, Layer, Stack
from formwright.arch.ops import (
    Attention,
    Convolution,
    CrossAttention,
    DynamicConvolution,
    GatedLinearUnit,
    Identity,
    LightweightConvolution,
    Operation,
    OpGraph,
    SeparableConvolution,
    Transform,
)
from formwright.arch.primitives import Term

Product: TypeAlias = tuple[int, ...]
Products: TypeAlias = list[Product]


class Memory(NamedTuple):
    """What a decoder attends to: the width and the number of the encoder's vectors."""

    width: int = 0
    tokens: int = 0


def total(products: Products) -> int:
    return sum(map(prod, products))


def operation_products(operation: Operation, width: int, output: int, n: int, memory: Memory) -> Products:
    """List the products of an operation from `width` to `output` over `n` tokens."""
    match operation:
        case Attention():
            return _attention_products(operation, width, output, n)
        case CrossAttention(heads, size, layers):
            inner, keys = heads * size, layers * memory.tokens
            maps: Products = [(n, width, inner), *[(keys, memory.width, inner)] * 2, (n, inner, output)]
            return maps + [(n, size, keys), (n, keys, size)] * heads
        case Transform():
            return _transform_products(operation, width, output, n)
        case DynamicConvolution():
            return _dynamic_products(operation, width, output, n)
        case SeparableConvolution(kernel, stacked):
            entries = [width] + [output] * (stacked - 1)
            return [product for entry in entries for product in [(n, kernel, entry), (n, entry, output)]]
        case LightweightConvolution(kernel, _, gated):
            gate: Products = [(n, width, 2 * output), (n, output, output)]
            return [(n, kernel, output), *(gate if gated else [])]
        case Convolution(kernel):
            return [(n, width, output)] * kernel
        case GatedLinearUnit():
            return [(n, width, output)] * 2
        case OpGraph(heads, size, term):
            letters = set(str(term)) & set("QKVP")  # no operation has a capital in its name
            head = run(term, n, size)[1]
            return [(n, width, heads * size)] * len(letters) + head * heads + [(n, heads * size, output)]
        case Identity():
            return []


def _attention_products(operation: Attention, width: int, output: int, n: int) -> Products:
    size = operation.head_width
    products: Products = [*[(n, width, operation.heads * size)] * 3, (n, operation.heads * size, output)]
    for _ in range(operation.heads):
        products += [(n, size, size)] if operation.score == "wma" else []
        products += [(n, size, n), (n, n, size)]  # scores, and the weighted sum of values
        if operation.relative is not None:  # the tables of several axes are added up first
            products += [(n, size, n)] + ([(n, n, size)] if operation.relative.values else [])
    return products


def _transform_products(operation: Transform, width: int, output: int, n: int) -> Products:
    parts = 2 if operation.transform == "dft" else 1  # a real and an imaginary part
    products: Products = [(n, width, width), (n, n, width)] * parts
    if operation.relative is not None:
        heads, size = operation.relative.heads, operation.relative.head_width
        products += [(n, width, heads * size)] * 2 + [(n, size, n), (n, n, size)] * heads + [(n, heads * size, output)]
    return products


def _dynamic_products(operation: DynamicConvolution, width: int, output: int, n: int) -> Products:
    kernel, heads, size = operation.kernel, operation.heads, operation.head_width
    inner = heads * size
    products: Products = [(n, kernel, width), (n, width, inner)]  # the span's depthwise and pointwise convolutions
    products += [(n, width, inner), (n, width, inner), (n, inner, heads * kernel)]  # query, value, kernels
    products += [(n, kernel, size)] * heads + [(n, inner, output)]
    return products + ([(n, size, n), (n, n, size)] * heads if operation.relative is not None else [])


def run(term: Term, n: int, d: int) -> tuple[tuple[int, ...], Products]:
    """Run a term on arrays; return the result's shape and the products it took, a part that occurs twice once."""
    done: dict[Term, NDArray[np.float64]] = {}
    products: Products = []

    def visit(part: Term) -> NDArray[np.float64]:
        if part not in done:
            done[part] = np.zeros((n, d)) if isinstance(part, str) else apply(str(part[0]), list(map(visit, part[1:])))
        return done[part]

    def apply(name: str, values: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        if name == "transpose":
            return values[0].T
        if name == "add":
            assert values[0].shape == values[1].shape
            return values[0] + values[1]
        if name not in ("matmul", "cosine", "euclidean"):
            return values[0]
        left, right = values[0], values[1] if name == "matmul" else values[1].T
        products.append((*left.shape, right.shape[1]))
        return left @ right

    return visit(term).shape, products


def layer_products(layer: Layer, n: int, memory: Memory) -> Products:
    return _block_products(layer, n, memory) if isinstance(layer, Block) else _cell_products(layer, n, memory)


def _block_products(block: Block, n: int, memory: Memory) -> Products:
    products = operation_products(block.mixer, block.width, block.width, n, memory)
    if block.cross is not None:
        products += operation_products(block.cross, block.width, block.width, n, memory)
    if block.feed_forward:
        entry = block.width
        for hidden in (*block.feed_forward, block.width):
            products.append((n, entry, hidden))
            entry = hidden
    return products


def _cell_products(cell: Cell, n: int, memory: Memory) -> Products:
    products: Products = []
    states = [cell.width]
    for junction in cell.junctions:
        branches = [branch for branch in (junction.left, junction.right) if branch is not None]
        for branch in branches:
            products += operation_products(branch.operation, states[branch.input], branch.width, n, memory)
        widths = [branch.width for branch in branches]
        states.append(sum(widths) if junction.combine == "concatenate" else max(widths))
    return products


def embedding_products(embedding: Embedding, n: int) -> Products:
    if isinstance(embedding, TokenEmbedding):
        return [(n, embedding.factorised, embedding.width)] if embedding.factorised else []
    if isinstance(embedding, PatchEmbedding):
        side = embedding.image // embedding.patch
        return [(embedding.patch, embedding.patch, embedding.channels, embedding.width)] * (side * side)
    return [(n, embedding.features, embedding.width)]


def _tokens(stack: Stack, length: int) -> int:
    if not isinstance(stack.embedding, PatchEmbedding):
        return length
    return (stack.embedding.image // stack.embedding.patch) ** 2 + stack.embedding.class_tokens


def card_products(card: Card, length: int) -> Products:
    """List every product of a forward pass over one sentence, or over the card's image."""
    memory = Memory()
    if card.encoder is not None:
        memory = Memory(card.encoder.out or card.encoder.layers[-1].output_width, _tokens(card.encoder, length))
    products: Products = []
    for stack in card.stacks:
        n = _tokens(stack, length)
        products += embedding_products(stack.embedding, n)
        for index, layer in enumerate(stack.layers):
            below = stack.layers[index - 1].output_width if index else stack.embedding.width
            products += [(n, below, layer.width)] if below != layer.width or stack.joints == "always" else []
            products += layer_products(layer, n, memory)
        last = stack.layers[-1].output_width
        products += [(n, last, stack.out)] if stack.out and (stack.out != last or stack.joints == "always") else []
    width = card.stacks[-1].out or card.stacks[-1].layers[-1].output_width
    return products + ([(1, width, width)] if card.pooler else []) + [(1, width, card.classes)]
