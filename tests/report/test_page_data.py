"""The data of the page: columns of equal length, small, and exact where exactness counts."""

import json
from pathlib import Path

import pytest
from tests.report.compressed import TEACHER_COSTS, WHOLE, compressed_facts
from tests.report.studies import SPACE, many_facts, small_study

from formwright.cost import params
from formwright.report.facts import study_facts
from formwright.report.markup import script_json
from formwright.report.page_data import page_data, value_names


def test_columns_are_as_long_as_there_are_trials(tmp_path: Path) -> None:
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


def test_models_have_costs_and_a_teacher_is_a_baseline(tmp_path: Path) -> None:
    data = page_data(compressed_facts(tmp_path, delivered=1))
    teacher, found = data["models"]
    assert (teacher["baseline"], found["baseline"]) == (True, False)
    assert teacher["values"] == {"params": params(WHOLE), "accuracy": 0.83, **TEACHER_COSTS}
    kinds = [{"name": name, "kind": "milliseconds"} for name in ("latency_ms", "onnx_ms", "int8_ms")]
    assert data["model_values"] == kinds, "macs are known of the trials too"


def test_counts_are_exact_and_scores_are_short(tmp_path: Path) -> None:
    facts = study_facts(small_study(tmp_path), SPACE)
    columns = {column["name"]: column for column in page_data(facts)["values"]}
    assert columns["params"]["of"][:4] == [row.costs["params"] for row in facts.trials[:4]]
    assert columns["accuracy"]["of"] == [0.61, 0.74, 0.69, 0.74, None, None]
    assert (columns["params"]["kind"], columns["accuracy"]["kind"]) == ("count", "score")


def test_the_map_and_the_predictions_name_trials_by_number(tmp_path: Path) -> None:
    facts = many_facts(tmp_path, 200)
    data = page_data(facts)
    assert [number for number, _, _ in data["map"]["spots"]] == list(range(0, 200, 5))
    assert len(data["map"]["x"]) == len(data["map"]["y"]) == len(facts.space_map.others)
    assert data["predictions"][0] == [100, 0.7, 0.65, 0.75]


def test_what_is_hidden_has_no_data(tmp_path: Path) -> None:
    data = page_data(study_facts(small_study(tmp_path), SPACE))
    assert (data["map"], data["predictions"]) == (None, [])


def test_goals_come_first_and_costs_last(tmp_path: Path) -> None:
    facts = many_facts(tmp_path, 3)
    assert value_names(facts.trials, facts.goals) == ["accuracy", "params", "loss", "macs"]


@pytest.mark.slow
def test_ten_thousand_trials_stay_small(tmp_path: Path) -> None:
    data = page_data(many_facts(tmp_path, 10_000))
    text = script_json(data)
    assert len(text) < 6_000_000
    assert len(json.loads(text)["designs"]["layers"]) < 1_000
