"""What other libraries call the tensors of the same layers, as tables from our names to theirs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from formwright.nn.heads import Task

PARTS = ("weight", "bias")  # of a linear map or a norm
QUERY_KEY_VALUE = ("query", "key", "value")


@dataclass(frozen=True)
class HeadNames:
    """Where a task head's tensors are; `pooler` is the dense layer that our design keeps in its pooler.

    `tied` is the output table, which must be the token table. Where `follows_activation`, the head uses the activation
    of the layers, and otherwise gelu.
    """

    task: Task
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
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mixer.output": "attention.output.dense",
    "mixer_norm": "attention.output.LayerNorm",
    "feed_forward.maps.0": "intermediate.dense",
    "feed_forward.maps.1": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}
_TABLES = {
    "embedding.tokens.weight": "embeddings.word_embeddings.weight",
    "embedding.positions.table": "embeddings.position_embeddings.weight",
    "embedding.norm.weight": "embeddings.LayerNorm.weight",
    "embedding.norm.bias": "embeddings.LayerNorm.bias",
}
_TYPED_TABLES = {**_TABLES, "embedding.types.weight": "embeddings.token_type_embeddings.weight"}
_TOKENS = HeadNames("token-classification", {"head.output": "classifier"})
_SPANS = HeadNames("span-extraction", {"head.output": "qa_outputs"})
_BERT_MASKED = HeadNames(
    "masked-lm",
    {
        "head.dense": "cls.predictions.transform.dense",
        "head.norm": "cls.predictions.transform.LayerNorm",
        "head.bias": "cls.predictions.bias",
    },
    tied="cls.predictions.decoder.weight",
    follows_activation=True,
)

BERT = Names(
    prefix="bert.",
    layer="encoder.layer.{}.",
    in_layer=_BERT_LAYER,
    outside=_TYPED_TABLES,
    pooler="pooler.dense",
    heads={
        "ForSequenceClassification": HeadNames(
            "sequence-classification", {"head.output": "classifier"}, pooler="bert.pooler.dense"
        ),
        "ForTokenClassification": _TOKENS,
        "ForQuestionAnswering": _SPANS,
        "ForMaskedLM": _BERT_MASKED,
        "ForPreTraining": _BERT_MASKED,
    },
)
ROBERTA = Names(
    prefix="roberta.",
    layer="encoder.layer.{}.",
    in_layer=_BERT_LAYER,
    outside=_TYPED_TABLES,
    pooler="pooler.dense",
    heads={
        "ForSequenceClassification": HeadNames(
            "sequence-classification", {"head.output": "classifier.out_proj"}, pooler="classifier.dense"
        ),
        "ForTokenClassification": _TOKENS,
        "ForQuestionAnswering": _SPANS,
        "ForMaskedLM": HeadNames(
            "masked-lm",
            {"head.dense": "lm_head.dense", "head.norm": "lm_head.layer_norm", "head.bias": "lm_head.bias"},
            tied="lm_head.decoder.weight",
        ),
    },
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
    heads={
        "ForSequenceClassification": HeadNames(
            "sequence-classification", {"head.output": "classifier"}, pooler="pre_classifier"
        ),
        "ForTokenClassification": _TOKENS,
        "ForQuestionAnswering": _SPANS,
        "ForMaskedLM": HeadNames(
            "masked-lm",
            {"head.dense": "vocab_transform", "head.norm": "vocab_layer_norm", "head.bias": "vocab_projector.bias"},
            tied="vocab_projector.weight",
            follows_activation=True,
        ),
    },
)
ELECTRA = Names(
    prefix="electra.",
    layer="encoder.layer.{}.",
    in_layer=_BERT_LAYER,
    outside={
        **_TYPED_TABLES,
        "embedding.widen.weight": "embeddings_project.weight",
        "embedding.widen.bias": "embeddings_project.bias",
    },
    optional=("embedding.widen.weight", "embedding.widen.bias"),
    unused=("ForPreTraining",),
    heads={
        "ForSequenceClassification": HeadNames(
            "sequence-classification", {"head.output": "classifier.out_proj"}, pooler="classifier.dense"
        ),
        "ForTokenClassification": _TOKENS,
        "ForQuestionAnswering": _SPANS,
        "ForMaskedLM": HeadNames(
            "masked-lm",
            {
                "head.dense": "generator_predictions.dense",
                "head.norm": "generator_predictions.LayerNorm",
                "head.bias": "generator_lm_head.bias",
            },
            tied="generator_lm_head.weight",
        ),
    },
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
        "embedding.pixels.weight": "embeddings.patch_embeddings.projection.weight",
        "embedding.pixels.bias": "embeddings.patch_embeddings.projection.bias",
        "embedding.positions.table": "embeddings.position_embeddings",
        "final_norm.weight": "layernorm.weight",
        "final_norm.bias": "layernorm.bias",
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
