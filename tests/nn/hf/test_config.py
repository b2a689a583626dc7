"""What a configuration says of a design in transformers' words; it survives a round trip."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import transformers
from tests.nn.hf.helpers import DESIGNS, SIDE, VOCABULARY

from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalDesign, IllegalInput
from formwright.nn.build import build
from formwright.nn.hf.config import FormwrightConfig
from formwright.nn.hf.config_fields import AUTO_CLASSES, class_name, pipeline_name, standard_fields, task_of
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.settings import Settings


@pytest.mark.parametrize("name", DESIGNS)
def test_saving_and_loading_keeps_everything(name: str, tmp_path: Path) -> None:
    card = DESIGNS[name][0]
    config = FormwrightConfig(card.to_json(), dropout=0.2, pooling="mean", pad_token_id=1, id2label={0: "a", 1: "b"})
    config.save_pretrained(tmp_path)
    again = transformers.AutoConfig.from_pretrained(tmp_path)
    assert isinstance(again, FormwrightConfig)
    assert again.design == card
    assert again.settings == Settings(dropout=0.2, pooling="mean")
    assert (again.pad_token_id, again.id2label, again.hidden_size) == (1, {0: "a", 1: "b"}, card.output_width)
    assert again.to_diff_dict() == config.to_diff_dict()  # all but the path it was read from
    assert FormwrightConfig.from_dict(config.to_dict()).to_dict() == config.to_dict()


def test_layers_that_differ_have_configurations_of_their_own() -> None:
    config = FormwrightConfig(DESIGNS["varied"][0].to_json())
    assert config.is_heterogeneous
    layers = list(config.per_layer_config)
    assert [layer.hidden_size for layer in layers] == [16, 24, 24, 16, 16]
    assert [layer.num_attention_heads for layer in layers] == [2, 2, None, None, None]
    assert [layer.intermediate_size for layer in layers] == [[24, 32], 32, 32, 8, None]
    assert config.hidden_size == 16
    assert not FormwrightConfig(DESIGNS["bert"][0].to_json()).is_heterogeneous


def test_a_card_decides_over_sizes_and_eager_is_a_setting(tmp_path: Path) -> None:
    FormwrightConfig(DESIGNS["bert"][0].to_json()).save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | {"hidden_size": 99}), encoding="utf-8")
    assert FormwrightConfig.from_pretrained(tmp_path).hidden_size == 16
    with pytest.raises(IllegalDesign):
        FormwrightConfig({"schema": 1})
    card = DESIGNS["bert"][0].to_json()
    assert FormwrightConfig(card, attn_implementation="eager").settings.eager
    assert not FormwrightConfig(card).settings.eager
    assert FormwrightConfig().card is None  # transformers builds an empty one to compare with


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


@pytest.mark.parametrize("task", ["token-classification", "seq2seq-lm", "tags-of-frames"])
def test_a_head_without_a_class_for_what_the_design_reads_is_refused(task: str) -> None:
    card = Card(Stack(FrameEmbedding(6, 16), (Block(16, Attention(2, 8)),)))
    for name in (class_name, pipeline_name):
        with pytest.raises(IllegalInput) as caught:
            name(card, task)
        assert all(fact in str(caught.value) for fact in ("frames", repr(task), "sequence-classification"))


def test_a_model_whose_head_has_no_class_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    card = Card(Stack(FrameEmbedding(6, 16), (Block(16, Attention(2, 8)),)))
    with pytest.raises(IllegalInput, match="cannot be saved with the head 'token-classification'"):
        save_pretrained_folder(build(card, head=HeadSpec("token-classification", 3)), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", DESIGNS)
def test_classes_and_tasks_correspond(name: str) -> None:
    card, spec = DESIGNS[name]
    task = spec.task if spec else None
    found = class_name(card, task)
    assert found in AUTO_CLASSES
    assert task_of(found) == task
