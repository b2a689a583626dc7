"""Configurations as designs, and the names of tensors, without any weights."""

from typing import Any

import pytest
import torch
from tests.nn.hf.helpers import lively

from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.core.errors import IllegalInput
from formwright.nn.hf.load import KINDS, ForeignConfig, model_type_of
from formwright.nn.hf.tensor_names import packed, unpacked

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
        ForeignConfig(BERT | {name: value})
    assert ForeignConfig(BERT | {name: None}).values


@pytest.mark.parametrize("name", ["gpt2", "t5", None, 7, ["bert"]])
def test_other_types_are_refused_with_the_list(name: Any) -> None:
    with pytest.raises(IllegalInput, match=", ".join(KINDS)):
        model_type_of({"model_type": name})


def test_rows_stand_head_by_head() -> None:
    heads, width = 3, 4
    parts = [torch.randn(heads * width, 5, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]
    rows = packed(parts, heads)
    for head in range(heads):
        for part in range(3):
            for row in range(width):
                assert torch.equal(rows[(head * 3 + part) * width + row], parts[part][head * width + row])
    assert all(torch.equal(one, other) for one, other in zip(unpacked(rows, heads), parts, strict=True))


def test_names_exist_and_biases_are_packed_alike() -> None:
    parts = [torch.arange(6.0) + 10 * part for part in range(3)]
    assert packed(parts, 2).tolist() == [0, 1, 2, 10, 11, 12, 20, 21, 22, 3, 4, 5, 13, 14, 15, 23, 24, 25]
    assert [part.tolist() for part in unpacked(packed(parts, 2), 2)] == [part.tolist() for part in parts]
    known = {*lively("bert-bare").state_dict(), *lively("viewer").state_dict(), *lively("varied").state_dict()}
    outside = {name.split("encoder.", 1)[1] for name in known if "encoder." in name}
    for names in (kind.names for kind in KINDS.values()):
        assert set(names.outside) <= outside
        assert len(set(names.in_layer.values())) == len(names.in_layer)
        assert len(set(names.outside.values())) == len(names.outside)
