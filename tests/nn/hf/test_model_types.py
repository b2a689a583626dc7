"""Configurations as designs, without any weights."""

from typing import Any

import pytest

from formwright.arch.layers import PatchEmbedding, TokenEmbedding
from formwright.core.errors import IllegalInput
from formwright.nn.hf.model_types import KINDS, ForeignConfig, model_type_of

BERT = {
    "model_type": "bert",
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
}


def design(**changes: Any) -> Any:
    config = BERT | changes
    return model_type_of(config).design(ForeignConfig(config))


def test_text_models_become_designs() -> None:
    from formwright.arch.card import Card
    from formwright.space.zoo import load_card

    assert Card(encoder=design().stack, pooler=True) == load_card("bert-base")
    found = design(model_type="roberta", max_position_embeddings=514, type_vocab_size=1)
    assert (found.embedding.length, found.skipped, found.embedding.types) == (512, 2, 1)
    assert design(model_type="electra", embedding_size=128).embedding.factorised == 128
    assert design(model_type="electra", embedding_size=768).embedding.factorised is None
    assert design(model_type="electra").settings.pooler_activation == "gelu"
    found = design(model_type="distilbert", dim=32, n_heads=4, n_layers=3, hidden_dim=64, activation="relu")
    assert isinstance(found.embedding, TokenEmbedding)
    assert (found.embedding.width, found.embedding.types, len(found.layers)) == (32, 0, 3)
    assert {(layer.activation, layer.feed_forward) for layer in found.layers} == {("relu", (64,))}


def test_image_models_become_designs() -> None:
    found = design(model_type="vit", image_size=[32, 32], patch_size=8, layer_norm_eps=1e-6)
    assert isinstance(found.embedding, PatchEmbedding)
    assert (found.embedding.image, found.embedding.patch) == (32, 8)
    assert found.stack.final_norm
    assert (found.settings.norm_epsilon, found.settings.dropout) == (1e-6, 0.0)
    vit, deit = (design(model_type=name, image_size=32, patch_size=8) for name in ("vit", "deit"))
    assert (vit.embedding.class_tokens, deit.embedding.class_tokens, deit.embedding.tokens) == (1, 2, 18)
    assert (deit.layers, deit.settings, deit.stack.final_norm) == (vit.layers, vit.settings, True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "vit", "image_size": [32, 16]}, "image_size is .32, 16."),
        ({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": None}, "pad_token_id is None"),
        ({"hidden_size": True}, "hidden_size is True"),
        ({"num_hidden_layers": -1}, "num_hidden_layers is -1"),
        ({"layer_norm_eps": "tiny"}, "layer_norm_eps is 'tiny'"),
        ({"hidden_act": ["gelu"]}, "hidden_act .'gelu'. is not supported"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(IllegalInput, match=message):
        design(**changes)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("position_embedding_type", "relative_key_query"),
        ("add_cross_attention", True),
        ("pruned_heads", {"0": [1]}),
        ("quantization_config", {"bits": 8}),
        ("per_layer_config", {"0": {"hidden_size": 8}}),
    ],
)
def test_options_that_change_the_model_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(IllegalInput, match=f"{name} .* is not supported"):
        ForeignConfig(BERT | {name: value}).check_supported()
    ForeignConfig(BERT | {name: None}).check_supported()


@pytest.mark.parametrize("name", ["gpt2", "t5", None, 7, ["bert"]])
def test_other_types_are_refused_with_the_list(name: Any) -> None:
    with pytest.raises(IllegalInput, match=", ".join(KINDS)):
        model_type_of({"model_type": name})
