"""Count parameters in closed form, from the card alone."""

from functools import lru_cache
from itertools import pairwise

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
    Relative,
    RelativeAttention,
    SeparableConvolution,
    Transform,
)
from formwright.core.errors import IllegalInput


def params(card: Card) -> int:
    """Count all parameters: embeddings, layers, pooler, classes, and idle ones of published models."""
    total = sum(_embedding(stack.embedding) for stack in card.stacks) + params_body(card) + card.idle
    if card.share_embedding:
        shared = card.stacks[0].embedding
        assert isinstance(shared, TokenEmbedding)
        total -= shared.vocabulary * shared.table_width
    width = card.output_width
    return total + (_affine(width, width) if card.pooler else 0) + (_affine(width, card.classes) if card.classes else 0)


def params_body(card: Card) -> int:
    """Count the parameters of the layers, the projections between them and the final norms; no embedding, no head."""
    memory = card.encoder.output_width if card.encoder is not None else 0
    return sum(_stack(stack, memory) for stack in card.stacks)


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
    return sum(_input_maps(operation, width, memory) for layer in layers for operation, width in _entries(layer))


def _entries(layer: Layer) -> list[tuple[Operation, int]]:
    if isinstance(layer, Block):
        return [(operation, layer.width) for operation in (layer.mixer, layer.cross) if operation is not None]
    branches = [branch for junction in layer.junctions for branch in junction.branches]
    return [(branch.operation, layer.state_widths[branch.input]) for branch in branches]


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


def _stack(stack: Stack, memory: int) -> int:
    layers = sum([_layer(layer, memory) for layer in stack.layers])
    projections = sum([_affine(below, above) for below, above in stack.projections])
    return layers + projections + (2 * stack.output_width if stack.final_norm else 0)


@lru_cache(maxsize=1 << 14)
def _layer(layer: Layer, memory: int) -> int:
    return _block(layer, memory) if isinstance(layer, Block) else _cell(layer, memory)


def _block(block: Block, memory: int) -> int:
    norm = 2 * block.width
    total = operation_params(block.mixer, block.width, block.width, memory)
    total += 0 if isinstance(block.mixer, Identity) else norm
    if block.cross is not None:
        total += operation_params(block.cross, block.width, block.width, memory) + norm
    if block.feed_forward:
        widths = (block.width, *block.feed_forward, block.width)
        total += sum(_affine(*pair) for pair in pairwise(widths)) + norm
    return total


def _cell(cell: Cell, memory: int) -> int:
    total = 0
    for junction in cell.junctions:
        for branch in junction.branches:
            total += operation_params(branch.operation, cell.state_widths[branch.input], branch.width, memory)
        total += sum(2 * cell.state_widths[state] for state in junction.normed_states)
    return total


def _embedding(embedding: Embedding) -> int:
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
