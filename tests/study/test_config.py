import json
from dataclasses import replace
from typing import Any

import pytest
from tests.study.cases import quick_config

from formwright.core.errors import IllegalDesign, IllegalInput
from formwright.study.config import (
    VERSION,
    Config,
    DistillationChoice,
    PretrainingChoice,
    TaskChoice,
    TrainingChoice,
)
from formwright.study.stop import Stop

FULL = Config(
    "flexibert-nano",
    TaskChoice("rows.csv", "folder", True, ("a", "b"), "c", 7),
    ("accuracy:max", "params:min"),
    Stop(3, 2.5, 100, 4, 1),
    ("params<=1e6", "accuracy>=0.5"),
    "halving",
    {"eta": 4, "names": ["x", "y"]},
    "staged",
    ("synflow",),
    TrainingChoice(10, 4, 1e-3, 0.2, "cosine", 0.0, 32, 0.1),
    3,
    20,
    99,
)


def stored(**changes: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(FULL.to_json())), **changes}


@pytest.mark.parametrize("config", [FULL, quick_config()])
def test_a_configuration_survives_json(config: Config) -> None:
    again = Config.from_json(json.loads(json.dumps(config.to_json())))
    assert again == config
    assert again.to_json() == config.to_json()


def test_equal_configurations_have_equal_hashes() -> None:
    assert hash(Config.from_json(stored())) == hash(FULL)


def test_what_has_a_default_may_be_left_out() -> None:
    data = stored()
    for name in ("searcher", "evaluator", "limits", "keep"):
        del data[name]
    config = Config.from_json(data)
    assert (config.searcher, config.evaluator, config.limits, config.keep) == ("regularized-evolution", "full", (), 1)
    assert config.options == {}


def test_every_fault_is_reported_at_once() -> None:
    data = stored(tsak=1, training={"stepz": 3}, stop={"trials": 0}, searcher="halving")
    with pytest.raises(IllegalDesign) as caught:
        Config.from_json(data)
    assert [fault.where for fault in caught.value.faults] == ["searcher", "stop", "training", ""]
    told = str(caught.value)
    assert "illegal configuration of a study, 4 faults" in told
    assert "'stepz'; nearest: 'steps'" in told
    assert "trials must be at least 1, not 0" in told
    assert "'tsak'; nearest: 'task'" in told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"task": "sst2"}, "task: must be an object, not str"),
        ({"task": None}, "task: must be an object, not NoneType"),
        ({"task": {}}, "'name'"),
        ({"evaluator": {"name": "fulll"}}, "no evaluator is called 'fulll'"),
        ({"evaluator": {"proxies": []}}, "evaluator: must be an object with a name"),
        ({"searcher": {"name": "random", "option": {}}}, "searcher: must be an object with a name"),
        ({"keep": 0}, "keep must be at least 1 and final_steps 1"),
        ({"stop": {}}, "say when to stop"),
    ],
)
def test_a_fault_is_explained(change: dict[str, Any], told: str) -> None:
    with pytest.raises(IllegalDesign) as caught:
        Config.from_json(stored(**change))
    assert told in str(caught.value)


@pytest.mark.parametrize("data", [stored(version=VERSION + 1), {}, [], None])
def test_another_version_is_refused(data: Any) -> None:
    with pytest.raises(IllegalInput, match=f"this formwright reads version {VERSION}: update it"):
        Config.from_json(data)


def test_the_options_of_a_configuration_are_its_own() -> None:
    options = {"eta": 3}
    config = quick_config(options=options)
    options["eta"] = 4
    assert config.options == {"eta": 3}


def test_pretraining_survives_json_and_studies_without_it_have_the_default() -> None:
    config = quick_config(evaluator="pretrained", pretraining=PretrainingChoice(7, "pydoc", 0.5, from_scratch=True))
    data = json.loads(json.dumps(config.to_json()))
    assert Config.from_json(data) == config
    del data["pretraining"]["from_scratch"]  # which studies of earlier versions do not know
    assert Config.from_json(data).pretraining == PretrainingChoice(7, "pydoc", 0.5)
    del data["pretraining"]
    assert Config.from_json(data).pretraining == PretrainingChoice()


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"steps": 0}, "at least 1 step, not 0"),
        ({"text": "books"}, "no text called 'books' to pretrain on; there are task and pydoc"),
        ({"least_overlap": 1.5}, "a share from 0 to 1, not 1.5"),
    ],
)
def test_a_pretraining_that_cannot_be_is_refused(choice: dict[str, Any], message: str) -> None:
    with pytest.raises(IllegalInput, match=message):
        PretrainingChoice(**choice)


def test_final_weights_survive_json_and_older_studies_begin_with_fresh_ones() -> None:
    config = quick_config(evaluator="bi-branch", final_weights="store")
    data = json.loads(json.dumps(config.to_json()))
    assert Config.from_json(data) == config
    del data["final_weights"]  # which studies of earlier versions do not know
    assert Config.from_json(data) == replace(config, final_weights="fresh")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"final_weights": "stor"}, "no final weights called 'stor'; there are fresh and store"),
        ({"evaluator": "pretrained", "final_weights": "store"}, "need trials that leave one"),
        (
            {
                "evaluator": "bi-branch",
                "pretraining": PretrainingChoice(from_scratch=True),
                "final_weights": "store",
            },
            "unless it trains every design from scratch",
        ),
    ],
)
def test_final_weights_that_are_not_there_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(IllegalInput, match=message):
        quick_config(**change)


SHARED = replace(
    FULL,
    evaluator="shared",
    weights="out/super-network",
    latency_table="out/latency.json",
    targets={"macs-50pct": "macs<=500.0"},
    first=({"layers": [{"heads": 2}]}, {"layers": [{"heads": 4}]}),
    final_steps=0,
    distillation=DistillationChoice("models/teacher", 0.1, 2.0),
)


def test_a_study_of_sub_networks_survives_json() -> None:
    again = Config.from_json(json.loads(json.dumps(SHARED.to_json())))
    assert again == SHARED
    assert (again.targets, again.first, again.weights) == (SHARED.targets, SHARED.first, "out/super-network")


def test_studies_of_earlier_versions_have_no_targets() -> None:
    data = stored()
    for name in ("weights", "latency_table", "targets", "first", "distillation"):
        del data[name]
    config = Config.from_json(data)
    assert (config.weights, config.latency_table, config.targets, config.first) == (None, None, {}, ())
    assert config.distillation is None


def test_a_distillation_that_cannot_be_read_is_told() -> None:
    with pytest.raises(IllegalDesign, match=r"distillation.*has no field 'heat'"):
        Config.from_json(stored(distillation={"teacher": "models/teacher", "labels": 0.1, "heat": 2.0}))


@pytest.mark.parametrize("changes", [{"evaluator": "full"}, {"weights": None}])
def test_shared_weights_and_their_evaluator_belong_together(changes: dict[str, Any]) -> None:
    with pytest.raises(IllegalInput, match="the evaluator shared, and no other, needs the folder of a super-network"):
        replace(SHARED, **{"final_steps": 1, **changes})


def test_sub_networks_alone_may_be_judged_by_some_rows() -> None:
    some = replace(SHARED, judged_rows=512)
    assert Config.from_json(json.loads(json.dumps(some.to_json()))).judged_rows == 512
    earlier = some.to_json()
    del earlier["judged_rows"]
    assert Config.from_json(earlier).judged_rows is None
    for config, rows in ((SHARED, 0), (FULL, 512)):
        with pytest.raises(IllegalInput, match="judged_rows is a number of rows, at least 1, and the evaluator shared"):
            replace(config, judged_rows=rows)


def test_only_sub_networks_need_no_training_in_the_end() -> None:
    assert SHARED.final_steps == 0
    with pytest.raises(IllegalInput, match="final_steps 1, not 3 and 0"):
        replace(FULL, final_steps=0)
    with pytest.raises(IllegalInput, match="final_steps 0, not 3 and -1"):
        replace(SHARED, final_steps=-1)
