"""A folder that was saved is the same model when it is read back, in plain torch."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.nn.hf.helpers import DESIGNS, assert_same, lively, outputs

from formwright.core.errors import IllegalDesign, IllegalInput
from formwright.nn.hf.imported import label_names, load_folder, read_own
from formwright.nn.hf.load import from_hf
from formwright.nn.hf.model_folder import SUMS
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.settings import Settings


@pytest.mark.parametrize("name", DESIGNS)
def test_reading_back_gives_the_same_model(name: str, tmp_path: Path) -> None:
    model = lively(name)
    save_pretrained_folder(model, tmp_path / "model")
    again = load_folder(tmp_path / "model")
    assert type(again) is type(model)
    assert not again.training
    assert_same(again, model, name)
    assert not torch.allclose(outputs(lively(name, seed=1), name), outputs(model, name), atol=1e-3)


def test_settings_labels_and_heads_are_kept(tmp_path: Path) -> None:
    settings = Settings(dropout=0.3, norm_epsilon=1e-5, pooler_activation="gelu", pooling="mean")
    model = lively("bert", settings=settings)
    save_pretrained_folder(model, tmp_path / "model", labels=["no", "yes", "perhaps"])
    again = from_hf(tmp_path / "model")
    assert (again.settings, again.labels, again.head) == (settings, ("no", "yes", "perhaps"), DESIGNS["bert"][1])
    assert torch.equal(outputs(again.model(), "bert"), outputs(model, "bert"))


def test_without_its_head_it_is_the_transformer_alone(tmp_path: Path) -> None:
    model = lively("bert")
    save_pretrained_folder(model, tmp_path / "model")
    again = from_hf(tmp_path / "model", head=False)
    assert again.head is None
    assert list(again.weights) == sorted(model.transformer.state_dict())
    assert torch.equal(outputs(again.model(), "bert"), outputs(model.transformer, "bert"))


def test_a_shared_table_is_saved_once_and_shared_again(tmp_path: Path) -> None:
    save_pretrained_folder(lively("translator"), tmp_path / "model")
    names = load_file(tmp_path / "model" / "model.safetensors")
    assert sum("embedding.tokens" in name for name in names) == 1
    again: Any = load_folder(tmp_path / "model")
    transformer = again.transformer
    assert transformer.decoder.embedding.tokens.weight is transformer.encoder.embedding.tokens.weight


def damaged(tmp_path: Path, **changes: Any) -> Path:
    folder = tmp_path / "model"
    save_pretrained_folder(lively("bert"), folder)
    (folder / SUMS).unlink()  # as if the damage had been there all the time
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | changes), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"model_type": "bert"}, IllegalInput, "holds a model of type 'bert', not 'formwright'"),
        ({"card": {}}, IllegalDesign, r"illegal card in .*config.json"),
        ({"card": None}, IllegalDesign, "must be a JSON object"),
        ({"dropout": "high"}, IllegalInput, "dropout in .* is 'high'"),
        ({"id2label": {"0": "a"}}, IllegalInput, "head.output.weight, which is .3, 16. instead of .1, 16."),
    ],
)
def test_a_damaged_configuration_is_refused(changes, kind, message, tmp_path) -> None:
    with pytest.raises(kind, match=message):
        load_folder(damaged(tmp_path, **changes))


def test_missing_and_foreign_tensors_are_refused(tmp_path: Path) -> None:
    folder = damaged(tmp_path)
    weights = load_file(folder / "model.safetensors")
    name = "transformer.encoder.layers.0.mixer_norm.weight"
    save_file({key: tensor for key, tensor in weights.items() if key != name}, folder / "model.safetensors")
    with pytest.raises(IllegalInput, match=f"{name}, which is absent"):
        read_own(folder)
    save_file(weights | {"extra": torch.zeros(1)}, folder / "model.safetensors")
    with pytest.raises(IllegalInput, match=r"extra, which is \(1,\) instead of absent"):
        read_own(folder)


@pytest.mark.parametrize(
    ("numbered", "names"),
    [
        ({"1": "b", "0": "a"}, ("a", "b")),
        ({str(index): str(index) for index in range(12)}, tuple(map(str, range(12)))),
        ({"0": "a", "2": "b"}, ()),
        (None, ()),
        (["a"], ()),
    ],
)
def test_labels_stand_in_the_order_of_their_numbers(numbered: Any, names: tuple[str, ...]) -> None:
    assert label_names({"id2label": numbered}) == names
