"""What keeps a model from being a stock BERT."""

from collections.abc import Iterator, Sequence

from formwright.arch.card import Card
from formwright.arch.layers import Block, Layer, Stack, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.nn.heads import HeadSpec
from formwright.nn.hf.names import BERT
from formwright.nn.settings import Settings

STOCK_CLASSES: dict[str, str] = {
    head.task: f"Bert{ending}" for ending, head in BERT.heads.items() if ending != "ForPreTraining"
}


def why_not_stock(card: Card, spec: HeadSpec | None, settings: Settings) -> Iterator[str]:
    """List everything that keeps a model from being a stock BERT; nothing if it can be one."""
    if card.family != "encoder" or card.encoder is None:
        yield f"the design is of family {card.family}; BERT is an encoder of text"
        return
    yield from _embedding_reasons(card.encoder)
    yield from _layer_reasons(card.encoder.layers)
    if card.encoder.final_norm:
        yield "a norm stands behind the last layer"
    if card.encoder.causal:
        yield "the encoder does not look ahead"
    yield from _head_reasons(card, spec, settings)


def _embedding_reasons(stack: Stack) -> Iterator[str]:
    embedding = stack.embedding
    if not isinstance(embedding, TokenEmbedding):
        yield f"the embedding reads {embedding.TYPE} instead of tokens"
        return
    if embedding.factorised is not None:
        yield f"the tables are {embedding.factorised} wide and widened to {embedding.width}"
    if embedding.positions != "learned":
        yield f"positions are {embedding.positions}; BERT learns a table of them"
    if not embedding.types:
        yield "there is no table of token types; BERT has one"
    if not embedding.norm:
        yield "the embedding is not normalised"


def _layer_reasons(layers: Sequence[Layer]) -> Iterator[str]:
    if len(set(layers)) > 1:
        yield "the layers differ from each other; those of BERT are all alike"
    for layer in dict.fromkeys(layers):
        where = f"layer {layers.index(layer)}"
        if isinstance(layer, Block):
            yield from (f"{where} {reason}" for reason in _block_reasons(layer))
        else:
            yield f"{where} is a cell of branches"


def _block_reasons(block: Block) -> Iterator[str]:
    mixer = block.mixer
    if isinstance(mixer, Attention):
        if mixer.score != "sdp":
            yield f"has {mixer.score} scores; those of BERT are scaled dot products"
        if mixer.relative is not None:
            yield "has relative positions"
        if not mixer.bias:
            yield "has attention without bias"
        if mixer.heads * mixer.head_width != block.width:
            yield f"has {mixer.heads} heads of width {mixer.head_width}, which together are not {block.width} wide"
    else:
        yield f"mixes tokens by {mixer.TYPE} instead of attention"
    if len(block.feed_forward) != 1:
        yield f"has {len(block.feed_forward)} hidden feed-forward layers; BERT has one"
    if block.norm != "post":
        yield "normalises before its parts; BERT does so after them"


def _head_reasons(card: Card, spec: HeadSpec | None, settings: Settings) -> Iterator[str]:
    if card.pooler and settings.pooler_activation != "tanh":
        yield f"the pooler uses {settings.pooler_activation}; that of BERT uses tanh"
    if card.classes:
        yield "the design has a classifier of its own"
    task = spec.task if spec is not None else None
    if task is not None and task not in STOCK_CLASSES:
        yield f"BERT has no class for {task}"
    if task in (None, "sequence-classification") and not card.pooler:
        yield f"the design has no pooler; {STOCK_CLASSES.get(task or '', 'BertModel')} has one"
    activations = {layer.activation for layer in card.stacks[0].layers if isinstance(layer, Block)}
    if task == "masked-lm" and activations != {"gelu"}:
        yield "the layers do not use gelu, which the head does; in BERT both use the same"
