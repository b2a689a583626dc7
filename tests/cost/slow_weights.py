"""Every weight of a design spelled out as a shape: a slow count that shares nothing with the closed forms."""

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

Weights = list[tuple[int, ...]]


def total(weights: Weights) -> int:
    return sum(map(prod, weights))


def linear(inputs: int, outputs: int, bias: bool = True) -> Weights:
    return [(outputs, inputs), (outputs,)] if bias else [(outputs, inputs)]


def norm(width: int) -> Weights:
    return [(width,), (width,)]


def operation_weights(operation: Operation, width: int, output: int, memory: int) -> Weights:
    """List the weights of an operation from `width` to `output`; `memory` is the encoder's width."""
    match operation:
        case Attention():
            return _attention(operation, width, output)
        case CrossAttention(heads, size, _, bias):
            sources = [width, memory, memory]  # query, key, value
            maps = [weight for source in sources for weight in linear(source, heads * size, bias)]
            return maps + linear(heads * size, output, bias)
        case Transform():
            return _transform(operation, width, output)
        case DynamicConvolution():
            return _dynamic(operation, width, output)
        case SeparableConvolution(kernel, stacked):
            entries = [width] + [output] * (stacked - 1)
            return [weight for entry in entries for weight in [(entry, kernel), *linear(entry, output)]]
        case LightweightConvolution(kernel, heads, gated):
            gate = linear(width, 2 * output) + linear(output, output)
            return [(heads, kernel)] + (gate if gated else [])
        case Convolution(kernel):
            return [(output, width, kernel), (output,)]
        case GatedLinearUnit():
            return linear(width, output) + linear(width, output)
        case OpGraph(heads, size, term):
            letters = set(str(term)) & set("QKVP")  # no operation has a capital in its name
            return [*linear(width, heads * size)] * len(letters) + linear(heads * size, output)
        case Identity():
            return []


def _attention(operation: Attention, width: int, output: int) -> Weights:
    inner, size = operation.heads * operation.head_width, operation.head_width
    weights = linear(width, inner, operation.bias) * 3 + linear(inner, output, operation.bias)
    if operation.score == "wma":
        weights.append((size, size))
    if operation.relative is not None:
        tables = ["keys", "values"] if operation.relative.values else ["keys"]
        weights += [(operation.relative.rows, size) for _ in range(operation.relative.axes) for _ in tables]
    return weights


def _transform(operation: Transform, width: int, output: int) -> Weights:
    if operation.relative is None:
        return []
    inner = operation.relative.heads * operation.relative.head_width
    query, value, result = linear(width, inner), linear(width, inner), linear(inner, output)
    return query + value + result + [(operation.relative.rows, operation.relative.head_width)]


def _dynamic(operation: DynamicConvolution, width: int, output: int) -> Weights:
    inner = operation.heads * operation.head_width
    span = [(width, operation.kernel), *linear(width, inner)]
    generator = linear(inner, operation.heads * operation.kernel)
    table = [(operation.relative.rows, operation.head_width)] if operation.relative is not None else []
    return span + linear(width, inner) + linear(width, inner) + generator + linear(inner, output) + table


def layer_weights(layer: Layer, memory: int) -> Weights:
    return _block(layer, memory) if isinstance(layer, Block) else _cell(layer, memory)


def _block(block: Block, memory: int) -> Weights:
    weights: Weights = []
    if not isinstance(block.mixer, Identity):
        weights += operation_weights(block.mixer, block.width, block.width, memory) + norm(block.width)
    if block.cross is not None:
        weights += operation_weights(block.cross, block.width, block.width, memory) + norm(block.width)
    if block.feed_forward:
        entry = block.width
        for hidden in block.feed_forward:
            weights += linear(entry, hidden)
            entry = hidden
        weights += linear(entry, block.width) + norm(block.width)
    return weights


def _cell(cell: Cell, memory: int) -> Weights:
    weights: Weights = []
    states = [cell.width]
    for junction in cell.junctions:
        branches = [branch for branch in (junction.left, junction.right) if branch is not None]
        for branch in branches:
            weights += operation_weights(branch.operation, states[branch.input], branch.width, memory)
        for state in {branch.input for branch in branches if branch.norm}:
            weights += norm(states[state])
        widths = [branch.width for branch in branches]
        states.append(sum(widths) if junction.combine == "concatenate" else max(widths))
    return weights


def embedding_weights(embedding: Embedding) -> Weights:
    learned = embedding.positions == "learned"
    if isinstance(embedding, TokenEmbedding):
        narrow = embedding.factorised or embedding.width
        tables: Weights = [(embedding.vocabulary, narrow), *[(1, narrow)] * embedding.types]
        tables += [(embedding.length, narrow)] if learned else []
        tables += norm(narrow) if embedding.norm else []
        return tables + (linear(narrow, embedding.width) if embedding.factorised else [])
    if isinstance(embedding, PatchEmbedding):
        side = embedding.image // embedding.patch
        filters = [(embedding.width, embedding.channels, embedding.patch, embedding.patch), (embedding.width,)]
        tokens = [(embedding.width,)] * embedding.class_tokens
        return filters + tokens + ([(side * side + len(tokens), embedding.width)] if learned else [])
    mapped = norm(embedding.features) + linear(embedding.features, embedding.width)
    return mapped + ([(embedding.length, embedding.width)] if learned else [])


def stack_weights(stack: Stack, memory: int) -> Weights:
    """List the weights of the layers, the projections between them and the final norm."""
    weights: Weights = []
    for index, layer in enumerate(stack.layers):
        below = stack.layers[index - 1].output_width if index else layer.width
        weights += linear(below, layer.width) if below != layer.width else []
        weights += layer_weights(layer, memory)
    return weights + (norm(stack.layers[-1].output_width) if stack.final_norm else [])


def body_weights(card: Card) -> Weights:
    memory = card.encoder.layers[-1].output_width if card.encoder is not None else 0
    return [weight for stack in card.stacks for weight in stack_weights(stack, memory)]


def card_weights(card: Card) -> Weights:
    """List every weight of a design; a shared token table stands there once, idle parameters in a row."""
    weights = [weight for stack in card.stacks for weight in embedding_weights(stack.embedding)] + body_weights(card)
    if card.share_embedding:
        table = card.stacks[0].embedding
        weights.remove((table.vocabulary, table.factorised or table.width))
    width = card.stacks[-1].layers[-1].output_width
    weights += linear(width, width) if card.pooler else []
    weights += linear(width, card.classes) if card.classes else []
    return [*weights, (card.idle,)]
