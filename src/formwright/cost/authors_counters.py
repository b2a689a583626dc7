"""The counters of authors whose published operations cannot be compared with ours: each counts as its authors' code."""

from collections.abc import Callable

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Layer
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput

_DROPOUT, _NORM, _ACTIVATION, _SOFTMAX = 4, 5, 8, 5  # operations for each number, as ELECTRA's authors count


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


def autoformer_flops(card: Card) -> int:
    """Count the MACs of a vision transformer as AutoFormer's authors do (their `get_complexity`), halves rounded down.

    Their blocks add the class token to a length that has it already, so layers are counted at one token too many, and
    the classifier at every token. A norm counts one operation for each number, and relative positions of keys and
    values together twice their largest distance for each pair of tokens, whatever the heads. Biases are left out but
    for that of the patches, and so is the final norm.
    """
    embedding, layers = card.stacks[0].embedding, _attentions(card, _plain_or_grid)
    if (
        not isinstance(embedding, PatchEmbedding)
        or (embedding.class_tokens, embedding.positions) != (1, "learned")
        or layers is None
    ):
        raise IllegalInput(
            "AutoFormer's counter supports vision transformers with a class token and learned positions, of "
            "self-attention with one feed-forward layer. Use macs or flops."
        )
    width, places = embedding.width, embedding.tokens
    twice = 2 * width * (1 + (places - 1) * embedding.channels * embedding.patch**2 + places * card.classes)
    twice += places * width  # half an operation for each number of the positions
    tokens = places + 1
    for attention, hidden in layers:
        inner = attention.heads * attention.head_width
        twice += 4 * tokens * width * (1 + 2 * inner + hidden) + 4 * tokens**2 * inner
        if attention.relative is not None:
            farthest = attention.relative.rows // 2 - 1  # a table has a row for the class token and one to spare
            twice += tokens * (tokens * (4 * farthest + 1) + inner)
    return twice // 2


def _plain_or_grid(attention: Attention) -> bool:
    """Tell whether an attention has scaled dot products, and relative positions as AutoFormer's or none."""
    relative = attention.relative
    return attention.score == "sdp" and (relative is None or (relative.axes == 2 and relative.values))


def _plain(attention: Attention) -> bool:
    """Tell whether an attention has scaled dot products and no relative positions."""
    return attention.score == "sdp" and attention.relative is None


def _attentions(card: Card, known: Callable[[Attention], bool]) -> list[tuple[Attention, int]] | None:
    """List the attention and the hidden size of each layer; None if a layer has other parts or another width."""
    stack, found = card.stacks[0], []
    for layer in stack.layers:
        if not isinstance(layer, Block) or not isinstance(layer.mixer, Attention) or not known(layer.mixer):
            return None
        if len(layer.feed_forward) != 1:
            return None
        found.append((layer.mixer, layer.feed_forward[0]))
    return None if stack.projections else found


def vitas_flops(card: Card) -> int:
    """Count the MACs of a vision transformer as ViTAS's authors do: no class token, the classifier at every patch.

    The counter knows images, self-attention without relative positions and one feed-forward layer.
    """
    embedding, layers = card.stacks[0].embedding, _attentions(card, _plain)
    if not isinstance(embedding, PatchEmbedding) or layers is None:
        raise IllegalInput(
            "ViTAS's counter supports vision transformers of plain self-attention with one feed-forward layer only. "
            "Use macs or flops."
        )
    patches, width = (embedding.image // embedding.patch) ** 2, embedding.width
    total = embedding.patch**2 * embedding.channels * width + width * card.classes
    for attention, hidden in layers:
        inner = attention.heads * attention.head_width
        total += 4 * width * inner + 2 * patches * inner + 2 * width * hidden
    return patches * total
