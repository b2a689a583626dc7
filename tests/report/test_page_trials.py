import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from tests.report.cards import any_cards, bert_base, encoder_decoder, evolved, flexibert_mini, text_encoder
from tests.report.studies import SPACE, TEACHER_COSTS, WHOLE, compressed_facts, many_facts, small_study

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.arch.ops import Identity
from formwright.cost import params
from formwright.report.facts import study_facts
from formwright.report.markup import script_json
from formwright.report.page_trials import Sketches, page_data, value_names
from formwright.report.palette import swatches_of
from formwright.report.words import describe_layer, headline


def test_layers_are_written_once_with_heads_widths_and_bands() -> None:
    sketches = Sketches()
    (stack,) = sketches.add(bert_base())[2]
    assert stack[2] == [0] * 12
    assert len(sketches.layers) == 1
    assert sketches.add(bert_base())[2] == [stack]
    sketches = Sketches()
    for _ in range(3):
        sketches.add(flexibert_mini())
    assert len(sketches.layers) == len(set(flexibert_mini().stacks[0].layers))
    sketches = Sketches()
    sketches.add(bert_base())
    words, width, output, bands, bars, lines = sketches.layers[0]
    assert (width, output, bands, bars) == (768, 768, [[[0, 12]]], [3072])
    assert sketches.swatches[0].name == "self-attention"
    assert sketches.phrases[lines[0]].startswith("self-attention, 12 heads x 64")
    assert sketches.phrases[words] == describe_layer(bert_base().stacks[0].layers[0])
    sketches = Sketches()
    assert len(sketches.add(encoder_decoder())[2]) == 2
    sketches.add(evolved())
    assert any(len(band) == 2 for layer in sketches.layers for band in layer[3])
    sketches = Sketches()
    sketches.add(text_encoder((Block(64, Identity()),)))
    assert [sketches.phrases[line] for line in sketches.layers[0][5]] == ["nothing"]


@settings(max_examples=25)
@given(any_cards())
def test_any_card_can_be_sketched(card: Card) -> None:
    sketches = Sketches()
    first, _, stacks = sketches.add(card)
    assert sketches.phrases[first] == headline(card)[:160]
    assert [len(stack[2]) for stack in stacks] == [len(stack.layers) for stack in card.stacks]
    assert all(len(phrase) <= 160 for phrase in sketches.phrases)
    assert set(sketches.swatches) <= set(swatches_of(card))


def test_columns_are_as_long_as_there_are_trials_and_exact(tmp_path: Path) -> None:
    facts = study_facts(small_study(tmp_path), SPACE)
    data = page_data(facts)
    assert {len(column) for column in data["trials"].values()} == {6}
    assert {len(column["of"]) for column in data["values"]} == {6}
    assert len(data["designs"]["of"]) == 6
    assert data["trials"]["state"] == [0, 0, 0, 0, 2, 1]
    assert data["reasons"] == {4: "the loss is not a number"}
    assert (data["best"], data["front"]) == (facts.best, list(facts.front))
    assert data["models"] == [
        {"name": "found after 1,000 steps", "baseline": False, "values": {"params": 90_000, "accuracy": 0.75}},
        {"name": "bert after 1,000 steps", "baseline": True, "values": {"params": 90_000, "accuracy": 0.71}},
    ]
    columns = {column["name"]: column for column in data["values"]}
    assert columns["params"]["of"][:4] == [row.costs["params"] for row in facts.trials[:4]]
    assert columns["accuracy"]["of"] == [0.61, 0.74, 0.69, 0.74, None, None]
    assert (columns["params"]["kind"], columns["accuracy"]["kind"]) == ("count", "score")
    assert (data["map"], data["predictions"]) == (None, [])


def test_models_have_costs_and_a_teacher_is_a_baseline(tmp_path: Path) -> None:
    data = page_data(compressed_facts(tmp_path, delivered=1))
    teacher, found = data["models"]
    assert (teacher["baseline"], found["baseline"]) == (True, False)
    assert teacher["values"] == {"params": params(WHOLE), "accuracy": 0.83, **TEACHER_COSTS}
    kinds = [{"name": name, "kind": "milliseconds"} for name in ("latency_ms", "onnx_ms", "int8_ms")]
    assert data["model_values"] == kinds, "macs are known of the trials too"


def test_map_and_predictions_name_trials_and_goals_come_first(tmp_path: Path) -> None:
    facts = many_facts(tmp_path, 200)
    data = page_data(facts)
    assert [number for number, _, _ in data["map"]["spots"]] == list(range(0, 200, 5))
    assert len(data["map"]["x"]) == len(data["map"]["y"]) == len(facts.space_map.others)
    assert data["predictions"][0] == [100, 0.7, 0.65, 0.75]
    assert value_names(facts.trials, facts.goals) == ["accuracy", "params", "loss", "macs"]


@pytest.mark.slow
def test_ten_thousand_trials_stay_small(tmp_path: Path) -> None:
    data = page_data(many_facts(tmp_path, 10_000))
    text = script_json(data)
    assert len(text) < 6_000_000
    assert len(json.loads(text)["designs"]["layers"]) < 1_000
