"""Count multiply-accumulate operations of one forward pass in closed form, from the card alone.

Counted are the matrix products and convolutions that run for one sentence: linear maps, scores and weighted sums of
attention, transforms as the dense products they are. Not counted are biases, norms, activations, softmax and table
look-ups. Task heads are not counted, except for the pooler and the classes that belong to the card.
"""

from functools import lru_cache
from itertools import pairwise
from math import prod

from formwright.arch.card import Card
from formwright.arch.layers import Block, Cell, Embedding, Layer, PatchEmbedding, Stack, TokenEmbedding
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
from formwright.arch.primitives import Term, shape_of

_PRODUCTS = frozenset({"matmul", "cosine", "euclidean"})


def macs(card: Card, length: int = 128) -> int:
    """Count the MACs of a forward pass over `length` tokens, in source and in target; images have their own length."""
    memory = (card.encoder.output_width, _tokens(card.encoder, length)) if card.encoder is not None else (0, 0)
    total = sum(_stack(stack, _tokens(stack, length), memory) for stack in card.stacks)
    return total + card.output_width * ((card.output_width if card.pooler else 0) + card.classes)


def input_size(card: Card, length: int = 128) -> str:
    """Describe the input that `macs` counts for: "128 tokens", "128 frames" or "224 x 224 pixels"."""
    sizes = [
        f"{embedding.image} x {embedding.image} pixels"
        if isinstance(embedding, PatchEmbedding)
        else f"{length} {embedding.TYPE}"
        for embedding in (stack.embedding for stack in card.stacks)
    ]
    return " and ".join(dict.fromkeys(sizes))  # source and target of the same size are named once


def _tokens(stack: Stack, length: int) -> int:
    return stack.embedding.tokens if isinstance(stack.embedding, PatchEmbedding) else length


def _stack(stack: Stack, length: int, memory: tuple[int, int]) -> int:
    layers = sum([_layer(layer, length, memory) for layer in stack.layers])
    projections = sum([length * below * above for below, above in stack.projections])
    return _embedding(stack.embedding, length) + layers + projections


def _embedding(embedding: Embedding, length: int) -> int:
    if isinstance(embedding, TokenEmbedding):
        return length * embedding.factorised * embedding.width if embedding.factorised else 0
    if isinstance(embedding, PatchEmbedding):
        patches = embedding.tokens - embedding.class_tokens
        return patches * embedding.patch**2 * embedding.channels * embedding.width
    return length * embedding.features * embedding.width


@lru_cache(maxsize=1 << 14)
def _layer(layer: Layer, length: int, memory: tuple[int, int]) -> int:
    return _block(layer, length, memory) if isinstance(layer, Block) else _cell(layer, length, memory)


def _block(block: Block, length: int, memory: tuple[int, int]) -> int:
    total = operation_macs(block.mixer, block.width, block.width, length, memory)
    if block.cross is not None:
        total += operation_macs(block.cross, block.width, block.width, length, memory)
    if block.feed_forward:
        widths = (block.width, *block.feed_forward, block.width)
        total += length * sum(below * above for below, above in pairwise(widths))
    return total


def _cell(cell: Cell, length: int, memory: tuple[int, int]) -> int:
    return sum(
        operation_macs(branch.operation, cell.state_widths[branch.input], branch.width, length, memory)
        for junction in cell.junctions
        for branch in junction.branches
    )


def operation_macs(operation: Operation, width: int, output: int, length: int, memory: tuple[int, int] = (0, 0)) -> int:
    """Count the MACs of one operation from `width` to `output`; `memory` is the encoder's width and length."""
    match operation:
        case Attention(heads, head_width, score, relative):
            inner = heads * head_width
            between = 2 + (1 + relative.values if relative is not None else 0)
            maps = 3 * width * inner + inner * output + (inner * head_width if score == "wma" else 0)
            return length * maps + between * length**2 * inner
        case CrossAttention(heads, head_width, layers):
            inner, (depth, tokens) = heads * head_width, memory
            maps = length * inner * (width + output) + 2 * layers * tokens * depth * inner
            return maps + 2 * length * layers * tokens * inner
        case Transform(transform, relative):
            mixing = (2 if transform == "dft" else 1) * (length * width**2 + length**2 * width)
            if relative is None:
                return mixing
            inner = relative.heads * relative.head_width
            return mixing + length * inner * (2 * width + output) + 2 * length**2 * inner
        case DynamicConvolution(kernel, heads, head_width, relative):
            inner = heads * head_width
            span = width * kernel + width * inner
            maps = 2 * width * inner + inner * heads * kernel + inner * kernel + inner * output
            return length * (span + maps) + (2 * length**2 * inner if relative is not None else 0)
        case SeparableConvolution(kernel, stacked):
            return length * (width * (kernel + output) + (stacked - 1) * output * (kernel + output))
        case LightweightConvolution(kernel, _, gated):
            return length * (output * kernel + (2 * width * output + output**2 if gated else 0))
        case Convolution(kernel):
            return length * kernel * width * output
        case GatedLinearUnit():
            return 2 * length * width * output
        case OpGraph(heads, head_width, term):
            inner = heads * head_width
            maps = length * inner * (len(operation.inputs) * width + output)
            return maps + heads * _term(term, {"n": length, "d": head_width})
        case Identity():
            return 0


def _term(term: Term, sizes: dict[str, int]) -> int:
    """Count the products of one head; a repeated subterm counts once."""
    seen: set[Term] = set()

    def visit(part: Term) -> int:
        if isinstance(part, str) or part in seen:
            return 0
        seen.add(part)
        below = sum(visit(operand) for operand in part[1:])
        dimensions = (*shape_of(part), shape_of(part[1])[1]) if part[0] in _PRODUCTS else ()
        return below + (prod(sizes[one] for one in dimensions) if dimensions else 0)

    return visit(term)
