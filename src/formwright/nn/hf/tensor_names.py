"""What other libraries call the tensors of the same layers, as tables from our names to theirs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

PARTS = ("weight", "bias")  # of a linear map or a norm
QUERY_KEY_VALUE = ("query", "key", "value")


@dataclass(frozen=True)
class HeadNames:
    """Where a task head's tensors are; `pooler` is the dense layer that our design keeps in its pooler.

    `tied` is the output table, which must be the token table. Where `follows_activation`, the head uses the activation
    of the layers, and otherwise gelu.
    """

    task: str
    tensors: Mapping[str, str]
    pooler: str | None = None
    tied: str | None = None
    follows_activation: bool = False


@dataclass(frozen=True)
class Names:
    """Where one library's tensors are; those of a layer follow `layer`, a format with the layer's number."""

    prefix: str
    layer: str
    in_layer: Mapping[str, str]
    outside: Mapping[str, str]
    heads: Mapping[str, HeadNames]  # by the end of the class name
    pooler: str | None = None
    optional: tuple[str, ...] = ()  # tensors that a configuration may leave out
    unused: tuple[str, ...] = ()  # heads for pretraining that no design of ours carries
    class_tokens: tuple[str, ...] = ()  # tensors that are the rows of our one
    refused: Mapping[str, str] = field(default_factory=dict)  # why, by the end of the class name


_BERT_LAYER = {
    **{part: f"attention.self.{part}" for part in QUERY_KEY_VALUE},
    "mixer.output": "attention.output.dense",
    "mixer_norm": "attention.output.LayerNorm",
    "feed_forward.maps.0": "intermediate.dense",
    "feed_forward.maps.1": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}
_TABLES = {
    "embedding.tokens.weight": "embeddings.word_embeddings.weight",
    "embedding.positions.table": "embeddings.position_embeddings.weight",
    **{f"embedding.norm.{part}": f"embeddings.LayerNorm.{part}" for part in PARTS},
}
_TYPED_TABLES = {**_TABLES, "embedding.types.weight": "embeddings.token_type_embeddings.weight"}


def _heads(classifier: tuple[str, str], masked: tuple[str, str, str, str], activation: bool) -> dict[str, HeadNames]:
    """Name the heads of a text model.

    `classifier` are the output and the pooler of its sequence classifier; `masked` the dense layer, the norm, the bias
    and the output table of its masked-token head, which uses the activation of the layers or gelu.
    """
    output, pooler = classifier
    *parts, tied = masked
    words = dict(zip(("head.dense", "head.norm", "head.bias"), parts, strict=True))
    return {
        "ForSequenceClassification": HeadNames("sequence-classification", {"head.output": output}, pooler),
        "ForTokenClassification": HeadNames("token-classification", {"head.output": "classifier"}),
        "ForQuestionAnswering": HeadNames("span-extraction", {"head.output": "qa_outputs"}),
        "ForMaskedLM": HeadNames("masked-lm", words, tied=tied, follows_activation=activation),
    }


_CLS = "cls.predictions"
_BERT_MASKED = (f"{_CLS}.transform.dense", f"{_CLS}.transform.LayerNorm", f"{_CLS}.bias", f"{_CLS}.decoder.weight")
_BERT_HEADS = _heads(("classifier", "bert.pooler.dense"), _BERT_MASKED, activation=True)
BERT = Names(
    prefix="bert.",
    layer="encoder.layer.{}.",
    in_layer=_BERT_LAYER,
    outside=_TYPED_TABLES,
    pooler="pooler.dense",
    heads=_BERT_HEADS | {"ForPreTraining": _BERT_HEADS["ForMaskedLM"]},
)
ROBERTA = replace(
    BERT,
    prefix="roberta.",
    heads=_heads(
        ("classifier.out_proj", "classifier.dense"),
        ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias", "lm_head.decoder.weight"),
        activation=False,
    ),
)
DISTILBERT = Names(
    prefix="distilbert.",
    layer="transformer.layer.{}.",
    in_layer={
        "query": "attention.q_lin",
        "key": "attention.k_lin",
        "value": "attention.v_lin",
        "mixer.output": "attention.out_lin",
        "mixer_norm": "sa_layer_norm",
        "feed_forward.maps.0": "ffn.lin1",
        "feed_forward.maps.1": "ffn.lin2",
        "feed_forward_norm": "output_layer_norm",
    },
    outside=_TABLES,
    heads=_heads(
        ("classifier", "pre_classifier"),
        ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias", "vocab_projector.weight"),
        activation=True,
    ),
)
_WIDEN = {f"embedding.widen.{part}": f"embeddings_project.{part}" for part in PARTS}
_GENERATOR = ("generator_predictions.dense", "generator_predictions.LayerNorm")
ELECTRA = replace(
    BERT,
    prefix="electra.",
    outside=_TYPED_TABLES | _WIDEN,
    pooler=None,
    optional=tuple(_WIDEN),
    unused=("ForPreTraining",),
    heads=_heads(
        ("classifier.out_proj", "classifier.dense"),
        (*_GENERATOR, "generator_lm_head.bias", "generator_lm_head.weight"),
        activation=False,
    ),
)
VIT = Names(
    prefix="vit.",
    layer="encoder.layer.{}.",
    in_layer={
        **{part: f"attention.attention.{part}" for part in QUERY_KEY_VALUE},
        "mixer.output": "attention.output.dense",
        "mixer_norm": "layernorm_before",
        "feed_forward.maps.0": "intermediate.dense",
        "feed_forward.maps.1": "output.dense",
        "feed_forward_norm": "layernorm_after",
    },
    outside={
        **{f"embedding.pixels.{part}": f"embeddings.patch_embeddings.projection.{part}" for part in PARTS},
        "embedding.positions.table": "embeddings.position_embeddings",
        **{f"final_norm.{part}": f"layernorm.{part}" for part in PARTS},
    },
    class_tokens=("embeddings.cls_token",),
    heads={"ForImageClassification": HeadNames("sequence-classification", {"head.output": "classifier"})},
)
DEIT = replace(
    VIT,
    prefix="deit.",
    class_tokens=("embeddings.cls_token", "embeddings.distillation_token"),
    refused={
        "ForImageClassificationWithTeacher": "it averages two classifiers, one of the class token and one of the "
        "distillation token, and a head of ours reads one token"
    },
)


def packed(parts: Sequence[Tensor], heads: int) -> Tensor:
    """Order the rows of the maps to query, key and value head by head, as our attention has them."""
    return torch.stack([part.unflatten(0, (heads, -1)) for part in parts], 1).flatten(0, 2)


def unpacked(rows: Tensor, heads: int) -> tuple[Tensor, ...]:
    """Undo `packed`."""
    return tuple(part.flatten(0, 1) for part in rows.unflatten(0, (heads, 3, -1)).unbind(1))
