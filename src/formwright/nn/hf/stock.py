"""Export a design that a stock BERT class can express as a plain BERT folder, which needs no code of ours."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.layers import Block, Layer, Stack, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.nn.heads import HeadSpec
from formwright.nn.hf.files import CONFIG, WEIGHTS, write_json
from formwright.nn.hf.folders import CARD, whole_folder
from formwright.nn.hf.names import BERT, QUERY_KEY_VALUE, unpacked
from formwright.nn.hf.readme import Facts, Provenance, readme
from formwright.nn.hf.save import check_labels, counted, label_fields, parts_of, save_tensors
from formwright.nn.hf.tokenizers import write_tokenizer
from formwright.nn.settings import Settings
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Transformer

_CLASSES = {head.task: f"Bert{ending}" for ending, head in BERT.heads.items() if ending != "ForPreTraining"}
_ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "swish": "silu", "leaky-relu": "leaky_relu", "squared-relu": "relu2"}


def export_stock(
    model: TaskModel | Transformer,
    folder: str | Path,
    *,
    tokenizer: Any = None,
    labels: Sequence[str] = (),
    scores: Facts | None = None,
    costs: Facts | None = None,
    lineage: Facts | None = None,
    force: bool = False,
) -> Path:
    """Write a model as a plain BERT folder; refuse one that no BERT class expresses, with every reason.

    The arguments are those of `save_pretrained_folder`.
    """
    card, spec = parts_of(model)
    settings = model.transformer.settings if isinstance(model, TaskModel) else model.settings
    reasons = list(why_not_stock(card, spec, settings))
    if reasons:
        raise IllegalInput("no BERT class can express this model:\n" + "\n".join(f"  {reason}" for reason in reasons))
    check_labels(spec, labels)
    provenance = Provenance(scores or {}, counted(card) if costs is None else costs, lineage or {})
    name = _CLASSES[spec.task] if spec else "BertModel"
    with whole_folder(Path(folder), force=force) as part:
        config = _config(card, settings) | {"architectures": [name], **label_fields(spec, labels)}
        length = config["max_position_embeddings"]
        padding = write_tokenizer(tokenizer, part, length) if tokenizer is not None else None
        write_json(part / CONFIG, config | {"pad_token_id": padding})
        save_tensors(_tensors(model), part / WEIGHTS)
        (part / CARD).write_bytes(card.canonical)
        text = readme(card, spec.task if spec else None, name, provenance, stock=True)
        (part / "README.md").write_text(text, encoding="utf-8")
    return Path(folder)


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
    if spec is None:
        return
    if spec.task not in _CLASSES:
        yield f"BERT has no class for {spec.task}"
    if spec.task == "sequence-classification" and not card.pooler:
        yield "the design has no pooler; BERT classifies sentences from one"
    if spec.task != "sequence-classification" and card.pooler:
        yield f"the design has a pooler; BERT has none for {spec.task}"
    activations = {layer.activation for layer in card.stacks[0].layers if isinstance(layer, Block)}
    if spec.task == "masked-lm" and activations != {"gelu"}:
        yield "the layers do not use gelu, which the head does; in BERT both use the same"
    return


def _config(card: Card, settings: Settings) -> dict[str, Any]:
    embedding, block = card.stacks[0].embedding, card.stacks[0].layers[0]
    assert isinstance(embedding, TokenEmbedding) and isinstance(block, Block) and isinstance(block.mixer, Attention)
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
    raise NotImplementedError
