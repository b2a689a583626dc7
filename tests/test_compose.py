"""What users say by flags and in Python composes the same pipelines; plans refuse what a run would."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import formwright as fw
from formwright import api
from formwright.cli.compress import compress
from formwright.cli.search import search
from formwright.cli.train import train
from formwright.compose import compose_compression, compose_search, compose_training, paths
from formwright.core.errors import IllegalInput, UnknownName
from formwright.pipeline.deliver import Deliver
from formwright.pipeline.draw_menu import DrawMenu
from formwright.pipeline.fine_tune import FineTune
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.pipeline.train_shared import TrainShared

TASK = TaskChoice("mini-glue/sst2")
ONLY_PRINTED = {"as_json", "dry_run"}
PLURAL = {"limit": "limits", "target": "targets", "observe": "observers"}
VALUES: dict[str, Any] = {
    "space": "flexibert-nano", "source": "bert-tiny", "task": "mini-glue/sst2", "recipe": "", "maximise": ["accuracy"],
    "minimise": ["params"], "limits": ["params<=1e6"], "searcher": "random", "evaluator": "full", "settings": None,
    "trials": 9, "seconds": 60.0, "hours": 0.5, "spend_steps": 900, "patience": 3, "tolerance": 0.1, "max_failures": 2,
    "steps": 7, "batch": 8, "learning_rate": 0.01, "length": 16, "dropout": 0.1, "keep": 2, "final_steps": 9,
    "final_weights": "fresh", "baseline": False, "workers": 3, "device": "cpu", "storage": None, "ray": None,
    "ray_cpus": 2.0, "ray_gpus": 0.0, "seed": 4, "observers": (), "force": True, "text": (), "label": "", "data": None,
    "series": "", "task_kind": "", "frames": None,
    "official_dev": False, "rows": 50, "epochs": None, "judge_every": 2, "beams": 2, "test": True,
    "pretrain": "self", "pretrain_steps": 3, "distil_from": "teacher", "save_every": 50, "model": "there",
    "targets": ["macs=50%"], "threads": 1, "accept_weak_teacher": True, "sizes": None,
}  # fmt: skip


@pytest.mark.parametrize(("command", "function"), [(search, fw.search), (compress, fw.compress), (train, fw.train)])
def test_every_flag_is_an_argument_in_python(
    command: Any, function: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[Pipeline, dict[str, Any]]] = []
    monkeypatch.setattr(api, "run", lambda pipeline, out, **conduct: ran.append((pipeline, conduct)))
    names = [PLURAL.get(name, name) for name in inspect.signature(command).parameters if name not in ONLY_PRINTED]
    given = {name: VALUES[name] for name in names if name != "out"}
    if command is compress:
        given |= {"recipe": "eftnas"}
    function(**given, out=tmp_path / "out")
    ((pipeline, conduct),) = ran
    assert pipeline.stages
    assert conduct["force"] is True


def test_what_is_said_of_a_search_is_in_its_stages() -> None:
    said = {name: VALUES[name] for name in ("minimise", "patience", "final_steps", "keep", "steps", "max_failures")}
    made = compose_search("flexibert-nano", TASK, **said, settings=[(["search", "training", "batch"], 9)])
    (stage,), (deliver,) = made.of_kind(Search), made.of_kind(Deliver)
    assert stage.objectives == ("accuracy:max", "params:min")
    assert (stage.stop.trials, stage.stop.patience, stage.stop.failures) == (None, 3, 2)
    assert (stage.training.steps, stage.training.batch, deliver.steps, deliver.keep) == (7, 9, 9, 2)


SHARED = ["autoformer", "hat", "ofa", "lighthubert", "magic", "autotinybert-kd", "fast-bert-search", "spos"]
PICTURES = ("autoformer", "ofa", "spos")  # which choose a space by the pictures of the task, where none is named


@pytest.mark.parametrize("recipe", SHARED)
def test_what_is_said_of_trainings_holds_for_shared_weights_too(recipe: str) -> None:
    said = {name: VALUES[name] for name in ("steps", "batch", "learning_rate", "length", "dropout", "device")}
    made = compose_search("autoformer-nano" if recipe in PICTURES else "", TASK, recipe=recipe, **said)
    *others, shared = made.of_kind(TrainShared)
    both = recipe == "lighthubert"  # whose steps are those of its two stages together
    assert VALUES["steps"] == (shared.steps or 0) + (others[0].steps if both else 0)
    for stage in (*others, shared, *made.of_kind(Search)):
        training = stage.training
        assert (training.batch, training.length, training.dropout, training.device) == (8, 16, 0.1, "cpu")
        assert (getattr(stage, "learning_rate", None) or training.learning_rate) == VALUES["learning_rate"]
    assert [stage.length for stage in made.of_kind(DrawMenu)] == [16] * (recipe == "fast-bert-search")
    assert made.of_kind(Search)[0].training.steps is None


def test_a_rate_of_a_recipe_stays_where_none_is_given() -> None:
    largest, shrinking = compose_search("autoformer-nano", TASK, recipe="ofa", steps=10).of_kind(TrainShared)
    assert (largest.steps, shrinking.steps) == (5, 10)
    assert shrinking.learning_rate == 1e-3
    assert {stage.training.learning_rate for stage in (largest, shrinking)} == {TrainingChoice().learning_rate}


@pytest.mark.parametrize("goals", [{"maximise": ["accuracy"], "minimise": ["latency_ms"]}, {"minimise": ["params"]}])
def test_goals_that_are_given_replace_the_costs_that_a_recipe_lowers(goals: dict[str, Any]) -> None:
    (usual,) = compose_search("", TaskChoice("digits"), recipe="linas").of_kind(Search)
    assert (usual.objectives, usual.minimise) == ((), ("macs",))
    (own,) = compose_search("", TaskChoice("digits"), recipe="linas", **goals).of_kind(Search)
    assert own.objectives == ("accuracy:max", f"{goals['minimise'][0]}:min")


def test_the_training_of_a_compression_is_the_one_that_is_given() -> None:
    given = TrainingChoice(batch=8, learning_rate=1e-4)
    for said in ({"training": given}, {"settings": [(["training"], {"batch": 8, "learning_rate": 1e-4})]}):
        (teacher,) = compose_compression("there", TASK, **said).of_kind(FineTune)
        assert (teacher.training.batch, teacher.training.learning_rate) == (8, 1e-4)
    (teacher,) = compose_compression("there", TASK, training=given, batch=16).of_kind(FineTune)
    assert (teacher.training.batch, teacher.training.learning_rate) == (16, 1e-4)


def test_options_of_a_recipe_are_arguments_too() -> None:
    said = compose_search("", TASK, recipe="autotinybert", latency=0.5)
    assert said == compose_search("", TASK, recipe="autotinybert", settings=[(["latency"], 0.5)])
    assert said != compose_search("", TASK, recipe="autotinybert")
    with pytest.raises(UnknownName, match="latency"):
        compose_search("", TASK, recipe="autoformer", latency=0.5)


@pytest.mark.parametrize(
    ("compose", "told"),
    [
        (lambda: compose_search("", TASK), "list spaces"),
        (lambda: compose_search("flexibert-nano", TASK, tolerance=0.1), "patience"),
        (lambda: compose_search("flexibert-nano", TASK, minimise=["params", "params"]), "twice"),
        (lambda: compose_search("flexibert-nano", TASK, kep=2), "'keep'"),
        (lambda: compose_compression("there"), "needs a task"),
        (lambda: compose_compression("there", TASK, recipe="nas-bert", sizes="5M"), "leave out the task"),
        (lambda: compose_compression("there", TASK, sizes="5M", rounds=3), "no option sizes, rounds"),
        (lambda: compose_training("bert-tiny", TASK, pretrain_steps=3), "pretrain"),
        (lambda: compose_training("bert-tiny", TASK, stepz=3), "'steps'"),
    ],
)
def test_what_cannot_be_composed_is_refused(compose: Any, told: str) -> None:
    with pytest.raises((IllegalInput, UnknownName), match=told):
        compose()


def test_a_study_whose_function_changed_is_refused(tmp_path: Path) -> None:
    def evaluate(card: Any, budget: Any) -> float:
        return 1.0

    def other(card: Any, budget: Any) -> float:
        return 2.0

    other.__qualname__ = evaluate.__qualname__
    fw.Study("flexibert-nano", evaluate, ["score:max"], tmp_path / "mine", searcher="random").run(trials=1)
    with pytest.raises(IllegalInput, match="function evaluate"):
        fw.Study("flexibert-nano", other, ["score:max"], tmp_path / "mine", searcher="random").run(trials=2)
    again = fw.Study("flexibert-nano", evaluate, ["score:max"], tmp_path / "mine", searcher="random").run(trials=2)
    assert len(again.trials) == 2


@pytest.mark.parametrize("wrong", [[1], {3: 4}])
def test_settings_that_are_no_mapping_of_paths_are_refused(wrong: Any) -> None:
    with pytest.raises(IllegalInput, match="settings"):
        paths(wrong)


def test_settings_may_be_numbers_of_numpy() -> None:
    (setting,) = paths({"training.steps": np.int64(3)})
    assert setting == (["training", "steps"], 3)
    assert type(setting[1]) is int


def test_a_setting_without_a_dot_is_an_option_of_the_recipe() -> None:
    made = compose_search("", TaskChoice("digits"), recipe="ofa", settings=[(["finetune"], 7), (["search", "seed"], 5)])
    assert (made.stages[-1].steps, made.of_kind(Search)[0].seed) == (7, 5)
