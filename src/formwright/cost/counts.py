"""Count parameters and operations: sums over the tensors and products that the parts of a card declare.

Multiply-accumulate operations are those of one forward pass: the matrix products and convolutions that run for one
sentence, that is linear maps, scores and weighted sums of attention, and transforms as the dense products they are. Not
counted are biases, norms, activations, softmax and table look-ups. Task heads are not counted, except for the pooler
and the classes that belong to the card.
"""

from collections.abc import Iterable
from functools import lru_cache

from formwright.arch.card import Card
from formwright.arch.embeddings import Embedding, PatchEmbedding, TokenEmbedding
from formwright.arch.heads import masked_head_tensors
from formwright.arch.layers import Layer
from formwright.arch.tensors import Factor, Tensor, linear, norm


def params(card: Card) -> int:
    """Count all parameters: embeddings, layers, pooler, classes, and idle ones of published models."""
    total = sum([_embedding_params(stack.embedding) for stack in card.stacks]) + params_body(card) + card.idle
    if card.share_embedding:
        shared = card.stacks[0].embedding
        assert isinstance(shared, TokenEmbedding)
        total -= shared.vocabulary * shared.table_width
    width = card.output_width
    return total + (_map(width, width) if card.pooler else 0) + (_map(width, card.classes) if card.classes else 0)


def params_body(card: Card) -> int:
    """Count the parameters of the layers, the projections between them and the final norms; no embedding, no head."""
    memory = card.encoder.output_width if card.encoder is not None else 0
    total = sum([_layer_params(layer, memory) for stack in card.stacks for layer in stack.layers])
    for stack in card.stacks:
        total += sum([_map(below, above) for _, below, above in stack.projections])
        total += _sizes(norm("", Factor(stack.output_width))) if stack.final_norm else 0
    return total


def params_with_mlm_head(card: Card) -> int:
    """Count with BERT's masked-language-model head, tied to the token table, and without the pooler."""
    pooler = _map(card.output_width, card.output_width) if card.pooler else 0
    return params(card) - pooler + _sizes(masked_head_tensors(card))


def params_attention(card: Card) -> int:
    """Count the query, key, value and further input maps of all attentions, as AutoBERT-Zero reports them."""
    memory = card.encoder.output_width if card.encoder is not None else 0
    return sum([_layer_input_maps(layer, memory) for stack in card.stacks for layer in stack.layers])


def _sizes(tensors: Iterable[Tensor]) -> int:
    return sum([tensor.size for tensor in tensors])


@lru_cache(maxsize=1 << 10)
def _map(inputs: int, outputs: int) -> int:
    return _sizes(linear("", (Factor(inputs),), (Factor(outputs),)))


@lru_cache(maxsize=1 << 14)
def _layer_params(layer: Layer, memory: int) -> int:
    return _sizes(layer.tensors(memory))


@lru_cache(maxsize=1 << 14)
def _layer_input_maps(layer: Layer, memory: int) -> int:
    return sum(
        tensor.size
        for operation, width, output in layer.shaped_operations
        if operation.INPUT_MAPS
        for tensor in operation.tensors(Factor(width), Factor(output), Factor(memory))
        if tensor.name.split(".")[0] in operation.INPUT_MAPS
    )


@lru_cache(maxsize=1 << 10)
def _embedding_params(embedding: Embedding) -> int:
    return _sizes(embedding.tensors())


def macs(card: Card, length: int = 128) -> int:
    """Count the MACs of a forward pass over `length` tokens, in source and in target; images have their own length."""
    encoder, memory, total = card.encoder, (0, 0), 0
    if encoder is not None:
        memory = encoder.output_width, encoder.embedding.tokens_of(length)
    for stack in card.stacks:
        tokens = stack.embedding.tokens_of(length)
        total += sum([_layer_macs(layer, tokens, memory) for layer in stack.layers])
        total += sum([tokens * below * above for _, below, above in stack.projections])
        total += _embedding_macs(stack.embedding, tokens)
    return total + card.output_width * ((card.output_width if card.pooler else 0) + card.classes)


@lru_cache(maxsize=1 << 10)
def _embedding_macs(embedding: Embedding, tokens: int) -> int:
    return sum(product.macs for product in embedding.products(tokens))


@lru_cache(maxsize=1 << 14)
def _layer_macs(layer: Layer, tokens: int, memory: tuple[int, int]) -> int:
    return sum(product.macs for product in layer.products(tokens, memory))


def input_size(card: Card, length: int = 128) -> str:
    """Describe the input that `macs` counts for: "128 tokens", "128 frames" or "224 x 224 pixels"."""
    sizes = [
        f"{embedding.image} x {embedding.image} pixels"
        if isinstance(embedding, PatchEmbedding)
        else f"{length} {embedding.TYPE}"
        for embedding in (stack.embedding for stack in card.stacks)
    ]
    return " and ".join(dict.fromkeys(sizes))  # source and target of the same size are named once
