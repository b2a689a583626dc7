"""Export a design that a stock BERT class can express as a plain BERT folder, which needs no code of ours."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.embeddings import Embedding, TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Layer
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.nn.hf.save import FolderForm, save_pretrained_folder
from formwright.nn.hf.tensor_names import BERT, PARTS, QUERY_KEY_VALUE, unpacked
from formwright.nn.settings import Settings
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Transformer

STOCK_CLASSES: dict[str, str] = {
    head.task: f"Bert{ending}" for ending, head in BERT.heads.items() if ending != "ForPreTraining"
}


def why_not_stock(card: Card, spec: HeadSpec | None, settings: Settings) -> list[str]:
    """List everything that keeps a model from being a stock BERT; nothing if it can be one."""
    if card.family != "encoder" or card.encoder is None:
        return [f"the design is of family {card.family}; BERT is an encoder of text"]
    stack, layers = card.encoder, card.encoder.layers
    reasons = _embedding_reasons(stack.embedding)
    reasons += _holding({"the layers differ from each other; those of BERT are all equal": len(set(layers)) > 1})
    for layer in dict.fromkeys(layers):
        found = _block_reasons(layer) if isinstance(layer, Block) else ["is a cell of branches"]
        reasons += [f"layer {layers.index(layer)} {reason}" for reason in found]
    task, activation = spec.task if spec is not None else None, settings.pooler_activation
    head = next((one for one in BERT.heads.values() if one.task == task), None)
    other = {layer.activation for layer in layers if isinstance(layer, Block)} != {"gelu"}
    needs_pooler = f"the design has no pooler; {STOCK_CLASSES.get(task or '', 'BertModel')} has one"
    return reasons + _holding(
        {
            "projections stand between the layers or behind them": bool(stack.projections),
            "a norm stands behind the last layer": stack.final_norm,
            "the encoder does not look ahead": stack.causal,
            f"the pooler uses {activation}; that of BERT uses tanh": card.pooler and activation != "tanh",
            "the design has a classifier of its own": bool(card.classes),
            f"BERT has no class for {task}": task is not None and task not in STOCK_CLASSES,
            needs_pooler: (spec is None or spec.pools) and not card.pooler,
            "the layers do not use gelu, which the head does; in BERT both use the same": (
                other and head is not None and head.follows_activation
            ),
        }
    )


def _holding(reasons: Mapping[str, bool]) -> list[str]:
    return [reason for reason, holds in reasons.items() if holds]


def _embedding_reasons(embedding: Embedding) -> list[str]:
    if not isinstance(embedding, TokenEmbedding):
        return [f"the embedding reads {embedding.TYPE} instead of tokens"]
    tables = f"the tables are {embedding.factorised} wide and widened to {embedding.width}"
    return _holding(
        {
            tables: embedding.factorised is not None,
            f"positions are {embedding.positions}; BERT learns a table of them": embedding.positions != "learned",
            "there is no table of token types; BERT has one": not embedding.types,
            "the embedding is not normalised": not embedding.norm,
        }
    )


def _block_reasons(block: Block) -> list[str]:
    mixer, hidden = block.mixer, len(block.feed_forward)
    reasons = {f"mixes tokens by {mixer.TYPE} instead of attention": True}
    if isinstance(mixer, Attention):
        heads = f"has {mixer.heads} heads of width {mixer.head_width}, which together are not {block.width} wide"
        reasons = {
            f"has {mixer.score} scores; those of BERT are scaled dot products": mixer.score != "sdp",
            "has relative positions": mixer.relative is not None,
            "has attention without bias": not mixer.bias,
            heads: mixer.heads * mixer.head_width != block.width,
        }
    reasons[f"has {hidden} hidden feed-forward layers; BERT has one"] = hidden != 1
    reasons["normalises before its parts; BERT does so after them"] = block.norm != "post"
    return _holding(reasons)


_ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "swish": "silu", "leaky-relu": "leaky_relu", "squared-relu": "relu2"}


def export_stock(model: TaskModel | Transformer, folder: str | Path, **contents: Any) -> Path:
    """Write a model as a plain BERT folder; raise with every reason if no BERT class can express it.

    `contents` are the keywords of `save_pretrained_folder`.
    """
    card, spec = model.card, model.spec
    reasons = why_not_stock(card, spec, model.settings)
    if reasons:
        raise IllegalInput("no BERT class can express this model:\n" + "\n".join(f"  {reason}" for reason in reasons))
    name = STOCK_CLASSES[spec.task] if spec else "BertModel"
    form = FolderForm(name, _config(card, model.settings) | {"architectures": [name]}, _tensors(model), stock=True)
    return save_pretrained_folder(model, folder, form=form, **contents)


def _config(card: Card, settings: Settings) -> dict[str, Any]:
    embedding, block = card.stacks[0].embedding, card.stacks[0].layers[0]
    assert isinstance(embedding, TokenEmbedding)
    assert isinstance(block, Block)
    assert isinstance(block.mixer, Attention)
    return {
        "model_type": "bert",
        "dtype": "float32",
        "vocab_size": embedding.vocabulary,
        "hidden_size": block.width,
        "num_hidden_layers": len(card.stacks[0].layers),
        "num_attention_heads": block.mixer.heads,
        "intermediate_size": block.feed_forward[0],
        "hidden_act": _ACTIVATIONS[block.activation],
        "hidden_dropout_prob": settings.dropout,
        "attention_probs_dropout_prob": settings.dropout,
        "max_position_embeddings": embedding.length,
        "type_vocab_size": embedding.types,
        "layer_norm_eps": settings.norm_epsilon,
        "tie_word_embeddings": True,
    }


def _tensors(model: TaskModel | Transformer) -> dict[str, Tensor]:
    """Return the weights under BERT's names, without a pooler that neither the class nor the head has a use for."""
    card, spec = model.card, model.spec
    head = next(head for head in BERT.heads.values() if head.task == spec.task) if spec is not None else None
    ours = model.state_dict()
    below, prefix = ("transformer.", BERT.prefix) if head is not None else ("", "")
    tensors = {f"{prefix}{theirs}": ours[f"{below}encoder.{name}"] for name, theirs in BERT.outside.items()}
    for index, block in enumerate(card.stacks[0].layers):
        place, layer = f"{below}encoder.layers.{index}.", prefix + BERT.layer.format(index)
        tensors |= {layer + name: part for name, part in _layer(ours, place, block).items()}
    if head is None or head.pooler is not None:
        tensors |= {f"{prefix}{BERT.pooler}.{part}": ours[f"{below}pooler.{part}"] for part in PARTS}
    for name, theirs in head.tensors.items() if head is not None else ():
        whole = {theirs: ours[name]} if name in ours else {f"{theirs}.{part}": ours[f"{name}.{part}"] for part in PARTS}
        tensors |= whole
    return tensors


def _layer(ours: Mapping[str, Tensor], place: str, block: Layer) -> dict[str, Tensor]:
    assert isinstance(block, Block)
    assert isinstance(block.mixer, Attention)
    tensors = {}
    for part in PARTS:
        rows = unpacked(ours[f"{place}mixer.query_key_value.{part}"], block.mixer.heads)
        own = dict(zip(QUERY_KEY_VALUE, rows, strict=True))
        for name, theirs in BERT.in_layer.items():
            tensors[f"{theirs}.{part}"] = own[name] if name in own else ours[f"{place}{name}.{part}"]
    return tensors
