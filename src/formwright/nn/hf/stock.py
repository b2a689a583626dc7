"""Export a design that a stock BERT class can express as a plain BERT folder, which needs no code of ours."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.layers import Block, Layer, Stack, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.nn.hf.checkpoint_files import CONFIG, WEIGHTS, write_json
from formwright.nn.hf.model_folder import CARD, whole_folder
from formwright.nn.hf.readme import Facts, Provenance, readme
from formwright.nn.hf.save import check_labels, counted, label_fields, parts_of, save_tensors
from formwright.nn.hf.side_files import evaluation_summary, length_fields, write_side_files
from formwright.nn.hf.tensor_names import BERT, PARTS, QUERY_KEY_VALUE, HeadNames, unpacked
from formwright.nn.hf.tokenizer_files import write_tokenizer
from formwright.nn.settings import Settings
from formwright.nn.task_model import HeadSpec, TaskModel
from formwright.nn.transformer import Transformer

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


_ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "swish": "silu", "leaky-relu": "leaky_relu", "squared-relu": "relu2"}


def export_stock(  # noqa: PLR0913  as in `save_pretrained_folder`
    model: TaskModel | Transformer,
    folder: str | Path,
    *,
    tokenizer: Any = None,
    labels: Sequence[str] = (),
    scores: Facts | None = None,
    costs: Facts | None = None,
    lineage: Facts | None = None,
    evaluation: Mapping[str, Any] | None = None,
    force: bool = False,
) -> Path:
    """Write a model as a plain BERT folder; raise with every reason if no BERT class can express it.

    The arguments are those of `save_pretrained_folder`.
    """
    card, spec = parts_of(model)
    settings = model.transformer.settings if isinstance(model, TaskModel) else model.settings
    reasons = list(why_not_stock(card, spec, settings))
    if reasons:
        raise IllegalInput("no BERT class can express this model:\n" + "\n".join(f"  {reason}" for reason in reasons))
    check_labels(spec, labels)
    origin = {**(lineage or {}), **evaluation_summary(evaluation)}
    provenance = Provenance(scores or {}, counted(card, evaluation) if costs is None else costs, origin)
    name = STOCK_CLASSES[spec.task] if spec else "BertModel"
    with whole_folder(Path(folder), force=force) as part:
        config = _config(card, settings) | {"architectures": [name], **label_fields(spec, labels)}
        length, types = config["max_position_embeddings"], config["type_vocab_size"]
        padding = write_tokenizer(tokenizer, part, length, types) if tokenizer is not None else None
        lengths = length_fields(spec, evaluation, part)
        write_json(part / CONFIG, config | {"pad_token_id": padding, **lengths})
        write_side_files(part, card, evaluation)
        save_tensors(_tensors(model), part / WEIGHTS)
        (part / CARD).write_bytes(card.canonical)
        text = readme(card, spec.task if spec else None, name, provenance, stock=True)
        (part / "README.md").write_text(text, encoding="utf-8")
    return Path(folder)


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
    card, spec = parts_of(model)
    head = next(head for head in BERT.heads.values() if head.task == spec.task) if spec is not None else None
    ours = model.state_dict()
    below, prefix = ("transformer.", BERT.prefix) if head is not None else ("", "")
    tensors = {f"{prefix}{theirs}": ours[f"{below}encoder.{name}"] for name, theirs in BERT.outside.items()}
    for index, block in enumerate(card.stacks[0].layers):
        layer = prefix + BERT.layer.format(index)
        tensors |= {layer + name: part for name, part in _layer(ours, f"{below}encoder.layers.{index}.", block).items()}
    if head is None or head.pooler is not None:
        tensors |= {f"{prefix}{BERT.pooler}.{part}": ours[f"{below}pooler.{part}"] for part in PARTS}
    return tensors | (_head(ours, head) if head is not None else {})


def _layer(ours: Mapping[str, Tensor], place: str, block: Layer) -> dict[str, Tensor]:
    assert isinstance(block, Block)
    assert isinstance(block.mixer, Attention)
    tensors = {}
    for part in PARTS:
        for name, theirs in BERT.in_layer.items():
            if name not in QUERY_KEY_VALUE:
                tensors[f"{theirs}.{part}"] = ours[f"{place}{name}.{part}"]
        rows = unpacked(ours[f"{place}mixer.query_key_value.{part}"], block.mixer.heads)
        for name, tensor in zip(QUERY_KEY_VALUE, rows, strict=True):
            tensors[f"{BERT.in_layer[name]}.{part}"] = tensor
    return tensors


def _head(ours: Mapping[str, Tensor], head: HeadNames) -> dict[str, Tensor]:
    tensors = {}
    for name, theirs in head.tensors.items():
        if name in ours:
            tensors[theirs] = ours[name]
        else:
            tensors |= {f"{theirs}.{part}": ours[f"{name}.{part}"] for part in PARTS}
    return tensors
