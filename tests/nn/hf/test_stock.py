"""A plain BERT folder gives the same outputs in transformers' own BERT classes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tests.nn.hf.helpers import DESIGNS, broken, enliven, hf_outputs, lively, outputs

from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Branch, Cell, Junction
from formwright.arch.ops import Attention, Identity, Relative, Transform
from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.hf.load import from_hf
from formwright.nn.hf.stock import export_stock, why_not_stock
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


BERT, HEAD = DESIGNS["bert"]


def reasons(card: Card, spec: HeadSpec | None = HEAD, settings: Settings | None = None) -> list[str]:
    return list(why_not_stock(card, spec, settings or Settings()))


def with_layer(**changes: Any) -> Card:
    layers = tuple(replace(layer, **changes) for layer in BERT.encoder.layers)
    return replace(BERT, encoder=replace(BERT.encoder, layers=layers))


def with_embedding(**changes: Any) -> Card:
    return replace(BERT, encoder=replace(BERT.encoder, embedding=replace(BERT.encoder.embedding, **changes)))


def with_stack(**changes: Any) -> Card:
    return replace(BERT, encoder=replace(BERT.encoder, **changes))


CELL = Cell(16, (Junction(Branch(0, Attention(2, 8), 16), Branch(0, Identity(), 16)),))


@pytest.mark.parametrize("task", ["sequence-classification", "token-classification", "span-extraction", "masked-lm"])
def test_nothing_keeps_a_bert_from_being_one(task: Any) -> None:
    assert reasons(BERT, HeadSpec(task)) == []


@pytest.mark.parametrize(
    ("card", "reason"),
    [
        (with_layer(mixer=Attention(2, 8, "wma")), "layer 0 has wma scores"),
        (with_layer(mixer=Attention(2, 8, relative=Relative(5))), "layer 0 has relative positions"),
        (with_layer(mixer=Attention(2, 8, bias=False)), "without bias"),
        (with_layer(mixer=Attention(3, 8)), "3 heads of width 8, which together are not 16 wide"),
        (with_layer(mixer=Transform("dct")), "mixes tokens by transform"),
        (with_layer(feed_forward=(8, 8)), "2 hidden feed-forward layers"),
        (with_layer(feed_forward=()), "0 hidden feed-forward layers"),
        (with_layer(norm="pre"), "normalises before"),
        (with_embedding(factorised=4), "4 wide and widened to 16"),
        (with_embedding(positions="sinusoidal"), "positions are sinusoidal"),
        (with_embedding(types=0), "no table of token types"),
        (with_embedding(norm=False), "not normalised"),
        (with_stack(final_norm=True), "behind the last layer"),
        (with_stack(causal=True), "does not look ahead"),
        (with_stack(layers=(CELL, CELL)), "cell of branches"),
        (with_stack(layers=(Block(16, Attention(2, 8), (32,)), Block(16, Attention(2, 8), (8,)))), "differ"),
        (replace(BERT, pooler=False), "no pooler; BertForSequenceClassification has one"),
        (replace(BERT, classes=4), "a classifier of its own"),
        (DESIGNS["viewer"][0], "of family vision"),
        (DESIGNS["writer"][0], "of family decoder"),
    ],
)
def test_each_difference_is_one_reason(card: Card, reason: str) -> None:
    found = reasons(card)
    assert len(found) == 1, found
    assert reason in found[0]


def test_heads_and_settings_have_reasons_too() -> None:
    assert "uses relu; that of BERT uses tanh" in reasons(BERT, settings=Settings(pooler_activation="relu"))[0]
    assert "no class for causal-lm" in reasons(BERT, HeadSpec("causal-lm"))[0]
    assert "BertModel has one" in reasons(replace(BERT, pooler=False), None)[0]
    assert "do not use gelu" in reasons(with_layer(activation="relu"), HeadSpec("masked-lm"))[0]
