"""A plain BERT folder gives the same outputs in transformers' own BERT classes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from tests.nn.hf.helpers import DESIGNS, broken, enliven, hf_outputs, lively, outputs

from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.hf.load import from_hf
from formwright.nn.hf.stock import export_stock
from formwright.nn.settings import Settings

CLASSES = {
    "bert": "AutoModelForSequenceClassification",
    "bert-tokens": "AutoModelForTokenClassification",
    "bert-spans": "AutoModelForQuestionAnswering",
    "bert-masked": "AutoModelForMaskedLM",
    "bert-bare": "AutoModel",
}


@pytest.mark.parametrize("name", CLASSES)
def test_stock_classes_give_the_same_outputs(name: str, tmp_path: Path) -> None:
    model = lively(name, settings=Settings(norm_epsilon=1e-5))
    export_stock(model, tmp_path / "model")
    loaded, report = getattr(transformers, CLASSES[name]).from_pretrained(tmp_path / "model", output_loading_info=True)
    assert not any(report.values()), report
    assert type(loaded).__module__ == "transformers.models.bert.modeling_bert"
    wanted = outputs(model, name)
    assert (hf_outputs(loaded, name) - wanted).abs().max() < 1e-5
    for key, weight in loaded.named_parameters():
        # a key's bias adds the same to all scores of a query, so that softmax takes it away again; `test_names` has it
        unseen = key.endswith("key.bias") or ("pooler" in key and name != "bert")
        if not unseen:
            with broken(weight):
                assert (hf_outputs(loaded, name) - wanted).abs().max() > 1e-4, key


@pytest.mark.parametrize("activation", ["gelu", "relu", "swish", "leaky-relu", "squared-relu"])
def test_every_activation_has_its_stock_name(activation: str, tmp_path: Path) -> None:
    card, spec = DESIGNS["bert"]
    assert card.encoder is not None
    layers = tuple(replace(layer, activation=activation) for layer in card.encoder.layers)
    model = build(replace(card, encoder=replace(card.encoder, layers=layers)), head=spec)
    enliven(model)
    export_stock(model, tmp_path / "model")
    loaded = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "model")
    assert (hf_outputs(loaded, "bert") - outputs(model, "bert")).abs().max() < 1e-5


def test_a_stock_folder_comes_back_as_the_same_card_with_labels(tmp_path: Path) -> None:
    model = lively("bert")
    export_stock(model, tmp_path / "model", labels=["no", "yes", "perhaps"])
    again = from_hf(tmp_path / "model")
    assert (again.card, again.head, again.labels) == (*DESIGNS["bert"], ("no", "yes", "perhaps"))
    assert torch.equal(outputs(again.model(), "bert"), outputs(model, "bert"))
    assert not [path for path in (tmp_path / "model").iterdir() if path.suffix == ".py"]
    assert "auto_map" not in json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))


def test_a_design_that_bert_cannot_express_is_refused_with_every_reason(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput) as refusal:
        export_stock(lively("varied"), tmp_path / "model")
    message = str(refusal.value)
    assert message.count("\n") >= 8
    assert "wma scores" in message
    assert not list(tmp_path.iterdir())
