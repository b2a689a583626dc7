"""The configuration survives a round trip, and reading it is safe where layers differ."""

import json
from pathlib import Path

import pytest
import transformers
from tests.nn.hf.helpers import DESIGNS

from formwright.core.errors import IllegalDesign
from formwright.nn.hf.config import FormwrightConfig
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
