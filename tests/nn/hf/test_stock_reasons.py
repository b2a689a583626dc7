"""Each thing that BERT cannot express is a reason of its own."""

from dataclasses import replace
from typing import Any

import pytest
from tests.nn.hf.helpers import DESIGNS

from formwright.arch.card import Card
from formwright.arch.layers import Block, Branch, Cell, Junction
from formwright.arch.ops import Attention, Identity, Relative, Transform
from formwright.nn.heads import HeadSpec
from formwright.nn.hf.stock_reasons import why_not_stock
from formwright.nn.settings import Settings

BERT, HEAD = DESIGNS["bert"]


def reasons(card: Card, spec: HeadSpec | None = HEAD, settings: Settings | None = None) -> list[str]:
    return list(why_not_stock(card, spec, settings or Settings()))


def with_layer(**changes: Any) -> Card:
    assert BERT.encoder is not None
    layers = tuple(replace(layer, **changes) for layer in BERT.encoder.layers)
    return replace(BERT, encoder=replace(BERT.encoder, layers=layers))


def with_embedding(**changes: Any) -> Card:
    assert BERT.encoder is not None
    return replace(BERT, encoder=replace(BERT.encoder, embedding=replace(BERT.encoder.embedding, **changes)))


def with_stack(**changes: Any) -> Card:
    assert BERT.encoder is not None
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
