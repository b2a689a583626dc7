"""What a configuration says of a design in transformers' words."""

from dataclasses import replace

import pytest
from tests.nn.hf.helpers import DESIGNS, SIDE, VOCABULARY

from formwright.nn.hf.config_fields import AUTO_CLASSES, class_name, standard_fields, task_of


def test_a_uniform_design_has_plain_sizes() -> None:
    fields = standard_fields(DESIGNS["bert"][0])
    wanted = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "head_dim": 8,
        "intermediate_size": 32,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 20,
        "type_vocab_size": 2,
    }
    assert fields | wanted == fields
    assert "per_layer_config" not in fields


def test_what_differs_is_listed_layer_by_layer() -> None:
    fields = standard_fields(DESIGNS["varied"][0])
    assert fields["hidden_size"] == 16  # of the output
    assert fields["num_attention_heads"] is None
    assert fields["embedding_size"] == 8
    assert fields["per_layer_config"] == {
        "0": {"num_attention_heads": 2, "head_dim": 8, "intermediate_size": [24, 32]},
        "1": {"hidden_size": 24, "num_attention_heads": 2, "head_dim": 8, "intermediate_size": 32},
        "2": {"hidden_size": 24, "intermediate_size": 32},
        "3": {"intermediate_size": 8},
    }


def test_keys_and_fields_of_layers_images_and_translation() -> None:
    card = DESIGNS["varied"][0]
    deep = replace(card, encoder=replace(card.encoder, layers=card.encoder.layers[:2] * 6))
    keys = list(standard_fields(deep)["per_layer_config"])
    assert keys == sorted(keys)
    assert keys[0] == "00"
    images, translation = standard_fields(DESIGNS["viewer"][0]), standard_fields(DESIGNS["translator"][0])
    assert (images["image_size"], images["patch_size"], images["num_channels"]) == (SIDE, 4, 3)
    assert (translation["encoder_layers"], translation["decoder_layers"]) == (2, 2)
    assert translation["is_encoder_decoder"]
    assert not images["is_encoder_decoder"]


@pytest.mark.parametrize("name", DESIGNS)
def test_classes_and_tasks_correspond(name: str) -> None:
    card, spec = DESIGNS[name]
    task = spec.task if spec else None
    found = class_name(card.family, task)
    assert found in AUTO_CLASSES
    assert task_of(found) == task
