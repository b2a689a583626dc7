"""Count parameters and operations in closed form, from the card alone.

Multiply-accumulate operations are those of one forward pass: the matrix products and convolutions that run for one
sentence, that is linear maps, scores and weighted sums of attention, and transforms as the dense products they are. Not
counted are biases, norms, activations, softmax and table look-ups. Task heads are not counted, except for the pooler
and the classes that belong to the card.
"""

from functools import lru_cache
from itertools import pairwise
from math import prod

from formwright.arch.card import Card
from formwright.arch.layers import Block, Embedding, Layer, PatchEmbedding, Stack, TokenEmbedding
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
    Relative,
    RelativeAttention,
    SeparableConvolution,
    Transform,
)
from formwright.arch.primitives import Term, shape_of
from formwright.core.errors import IllegalInput

_PRODUCTS = frozenset({"matmul", "cosine", "euclidean"})
_DROPOUT, _NORM, _ACTIVATION, _SOFTMAX = 4, 5, 8, 5  # operations for each number, as ELECTRA's authors count


def params(card: Card) -> int:
    """Count all parameters: embeddings, layers, pooler, classes, and idle ones of published models."""
    total = sum(_embedding_params(stack.embedding) for stack in card.stacks) + params_body(card) + card.idle
    if card.share_embedding:
        shared = card.stacks[0].embedding
        assert isinstance(shared, TokenEmbedding)
        total -= shared.vocabulary * shared.table_width
    width = card.output_width
    return total + (_affine(width, width) if card.pooler else 0) + (_affine(width, card.classes) if card.classes else 0)


def params_body(card: Card) -> int:
    """Count the parameters of the layers, the projections between them and the final norms; no embedding, no head."""
    memory = card.encoder.output_width if card.encoder is not None else 0
    total = sum([_layer_params(layer, memory) for stack in card.stacks for layer in stack.layers])
    for stack in card.stacks:
        total += sum([_affine(below, above) for below, above in stack.projections])
        total += 2 * stack.output_width if stack.final_norm else 0
    return total


def params_with_mlm_head(card: Card) -> int:
    """Count with BERT's masked-language-model head, tied to the token table, and without the pooler."""
    table = card.stacks[-1].embedding
    if not isinstance(table, TokenEmbedding):
        raise IllegalInput("a masked-language-model head needs a token embedding; this design has none")
    pooler = _affine(card.output_width, card.output_width) if card.pooler else 0
    head = _affine(card.output_width, table.table_width) + 2 * table.table_width + table.vocabulary
    return params(card) - pooler + head


def params_attention(card: Card) -> int:
    """Count the query, key, value and further input maps of all attentions, as AutoBERT-Zero reports them."""
    memory = card.encoder.output_width if card.encoder is not None else 0
    layers = [layer for stack in card.stacks for layer in stack.layers]
    return sum(_input_maps(operation, width, memory) for layer in layers for operation, width, _ in _operations(layer))


def _input_maps(operation: Operation, width: int, memory: int) -> int:
    match operation:
        case Attention(heads, head_width, _, _, bias):
            return 3 * _affine(width, heads * head_width, bias)
        case CrossAttention(heads, head_width, _, bias):
            return _affine(width, heads * head_width, bias) + 2 * _affine(memory, heads * head_width, bias)
        case OpGraph(heads, head_width):
            return len(operation.inputs) * _affine(width, heads * head_width)
        case _:
            return 0


def _affine(inputs: int, outputs: int, bias: bool = True) -> int:
    return inputs * outputs + bias * outputs


@lru_cache(maxsize=1 << 14)
def _layer_params(layer: Layer, memory: int) -> int:
    total = sum(operation_params(*one, memory) for one in _operations(layer))
    if isinstance(layer, Block):
        norms = (not isinstance(layer.mixer, Identity)) + (layer.cross is not None) + bool(layer.feed_forward)
        return total + sum(_affine(*pair) for pair in _feed_forward(layer)) + norms * 2 * layer.width
    normed = [state for junction in layer.junctions for state in junction.normed_states]
    return total + sum(2 * layer.state_widths[state] for state in normed)


def _operations(layer: Layer) -> list[tuple[Operation, int, int]]:
    """List the operations of a layer, each with the widths of what it reads and what it gives."""
    if isinstance(layer, Block):
        return [(one, layer.width, layer.width) for one in (layer.mixer, layer.cross) if one is not None]
    branches = [branch for junction in layer.junctions for branch in junction.branches]
    return [(branch.operation, layer.state_widths[branch.input], branch.width) for branch in branches]


def _feed_forward(layer: Layer) -> list[tuple[int, int]]:
    """List the linear maps of a feed-forward layer by their widths."""
    if not isinstance(layer, Block) or not layer.feed_forward:
        return []
    return list(pairwise((layer.width, *layer.feed_forward, layer.width)))


def _embedding_params(embedding: Embedding) -> int:
    if isinstance(embedding, TokenEmbedding):
        rows = embedding.vocabulary + embedding.types + 2 * embedding.norm
        rows += embedding.length if embedding.positions == "learned" else 0
        widening = _affine(embedding.factorised, embedding.width) if embedding.factorised else 0
        return rows * embedding.table_width + widening
    if isinstance(embedding, PatchEmbedding):
        pixels = embedding.patch**2 * embedding.channels
        rows = embedding.class_tokens + (embedding.tokens if embedding.positions == "learned" else 0)
        return _affine(pixels, embedding.width) + rows * embedding.width
    rows = embedding.length if embedding.positions == "learned" else 0
    return 2 * embedding.features + _affine(embedding.features, embedding.width) + rows * embedding.width


def operation_params(operation: Operation, width: int, output: int, memory: int = 0) -> int:
    """Count the parameters of one operation from `width` to `output`; `memory` is the encoder's width."""
    match operation:
        case Attention(heads, head_width, score, relative, bias):
            inner = heads * head_width
            maps = 3 * _affine(width, inner, bias) + _affine(inner, output, bias)
            return maps + (head_width**2 if score == "wma" else 0) + _relative(relative, head_width)
        case CrossAttention(heads, head_width, _, bias):
            inner = heads * head_width
            return _affine(width, inner, bias) + 2 * _affine(memory, inner, bias) + _affine(inner, output, bias)
        case Transform(_, RelativeAttention(heads, head_width, rows)):
            inner = heads * head_width
            return 2 * _affine(width, inner) + rows * head_width + _affine(inner, output)
        case Transform() | Identity():
            return 0
        case DynamicConvolution(kernel, heads, head_width, relative):
            inner = heads * head_width
            span = width * kernel + _affine(width, inner)
            maps = 2 * _affine(width, inner) + _affine(inner, heads * kernel) + _affine(inner, output)
            return span + maps + _relative(relative, head_width)
        case SeparableConvolution(kernel, stacked):
            first = width * kernel + _affine(width, output)
            return first + (stacked - 1) * (output * kernel + _affine(output, output))
        case LightweightConvolution(kernel, heads, gated):
            return heads * kernel + (_affine(width, 2 * output) + _affine(output, output) if gated else 0)
        case Convolution(kernel):
            return _affine(kernel * width, output)
        case GatedLinearUnit():
            return 2 * _affine(width, output)
        case OpGraph(heads, head_width):
            inner = heads * head_width
            return len(operation.inputs) * _affine(width, inner) + _affine(inner, output)


def _relative(relative: Relative | None, head_width: int) -> int:
    return relative.axes * relative.rows * head_width * (1 + relative.values) if relative is not None else 0


def macs(card: Card, length: int = 128) -> int:
    """Count the MACs of a forward pass over `length` tokens, in source and in target; images have their own length."""
    memory = (card.encoder.output_width, _tokens(card.encoder, length)) if card.encoder is not None else (0, 0)
    total = 0
    for stack in card.stacks:
        tokens = _tokens(stack, length)
        total += sum([_layer_macs(layer, tokens, memory) for layer in stack.layers])
        total += sum([tokens * below * above for below, above in stack.projections])
        total += _embedding_macs(stack.embedding, tokens)
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


def _embedding_macs(embedding: Embedding, length: int) -> int:
    if isinstance(embedding, TokenEmbedding):
        return length * embedding.factorised * embedding.width if embedding.factorised else 0
    if isinstance(embedding, PatchEmbedding):
        patches = embedding.tokens - embedding.class_tokens
        return patches * embedding.patch**2 * embedding.channels * embedding.width
    return length * embedding.features * embedding.width


@lru_cache(maxsize=1 << 14)
def _layer_macs(layer: Layer, length: int, memory: tuple[int, int]) -> int:
    products = sum(operation_macs(*one, length, memory) for one in _operations(layer))
    return products + length * sum(below * above for below, above in _feed_forward(layer))


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


def electra_flops(card: Card, length: int = 128) -> int:
    """Count the FLOPs of inference on a classification task the way ELECTRA's authors do.

    The counter knows encoders made of self-attention and one feed-forward layer; any other design is refused.
    """
    if card.family != "encoder" or card.encoder is None or not isinstance(card.encoder.embedding, TokenEmbedding):
        raise IllegalInput(
            f"ELECTRA's counter supports text encoders only; this is a {card.family} design. Use macs or flops."
        )
    if card.encoder.projections:
        raise IllegalInput(
            "ELECTRA's counter supports layers of one width only; this design has several. Use macs or flops."
        )
    width = card.output_width
    blocks = sum(_electra_block(layer, length) for layer in card.encoder.layers)
    classifier = 2 * width**2 + width + _ACTIVATION * width + 2 * width
    return length * (blocks + _electra_embedding(card.encoder.embedding, length) + classifier)


def _electra_block(layer: Layer, length: int) -> int:
    if not isinstance(layer, Block) or not isinstance(layer.mixer, Attention) or len(layer.feed_forward) != 1:
        raise IllegalInput(
            "ELECTRA's counter supports self-attention with one feed-forward layer only. Use macs or flops."
        )
    if layer.mixer.score != "sdp" or layer.mixer.relative is not None:
        raise IllegalInput(
            "ELECTRA's counter supports scaled dot products without relative positions only. Use macs or flops."
        )
    width, heads, inner, hidden = (
        layer.width,
        layer.mixer.heads,
        layer.mixer.heads * layer.mixer.head_width,
        layer.feed_forward[0],
    )
    attention = 3 * (2 * width * inner + inner) + 2 * inner * length + (_SOFTMAX + _DROPOUT + 1) * length * heads
    attention += 2 * width * length + 2 * width**2 + width + (_DROPOUT + 1) * width + _NORM
    feed_forward = 4 * width * hidden + (_ACTIVATION + 1) * hidden + width + (_DROPOUT + 1 + _NORM) * width
    return attention + feed_forward


def _electra_embedding(embedding: TokenEmbedding, length: int) -> int:
    table = embedding.table_width
    lookup = 2 * table * embedding.vocabulary + 2 * table * (length + 2) + 2 * table + (_NORM + _DROPOUT) * table
    return lookup + (2 * embedding.width * table + embedding.width if embedding.factorised else 0)
