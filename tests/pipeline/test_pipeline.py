"""A pipeline is a value: plain JSON, names of stages, options by their paths, and keys of what it makes."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.cases import Given, Sum, quick, registered, search_of

from formwright.core.errors import IllegalDesign, IllegalInput, UnknownName
from formwright.core.options import Stage
from formwright.pipeline.deliver import Deliver
from formwright.pipeline.evaluators import PretrainFirst, ShareBranches, TrainFully, UntrainedScores
from formwright.pipeline.files import read_pipeline_file, value_of
from formwright.pipeline.pipeline import VERSION, Pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.shared_evaluator import SharedSubnetworks
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.pipeline.train_model import TrainModel
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes import RECIPES
from formwright.search import searcher
from formwright.study.stop import Stop


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    with registered():
        yield


SOURCE = Sum(seed=9)
FULL = Search(
    "flexibert-nano",
    TaskChoice("rows.csv", "folder", True, ("a", "b"), "c", 7, "regression"),
    ("accuracy:max", "params:min"),
    ("params<=1e6", "accuracy>=0.5"),
    searcher("halving", eta=4, min_steps=7),
    PretrainFirst(7, "pydoc", 0.5),
    TrainingChoice(10, 4, 1e-3, 0.2, "cosine", 0.0, 32, 0.1),
    Stop(3, 2.5, 100, 4, 1),
    ({"layers": [{"heads": 2}]},),
    SOURCE,
    99,
)
WHOLE = Pipeline(
    SOURCE, FULL, Deliver(FULL, 3, {"half": "macs<=500.0"}, 20, weights="fresh", teacher=SOURCE), recipe="mine"
)


def again(made: Pipeline, **options: Any) -> Pipeline:
    return Pipeline.from_json(json.loads(json.dumps(made.to_json(**options))))


def stored(**changes: Any) -> dict[str, Any]:
    """Give the JSON of a pipeline with some options of its search changed."""
    data: dict[str, Any] = json.loads(json.dumps(WHOLE.to_json()))
    data["stages"]["search"] |= changes
    return data


@pytest.mark.parametrize(
    "made",
    [
        WHOLE,
        quick(),
        quick(evaluator=ShareBranches(7, from_scratch=True), final_weights="shared"),
        quick(evaluator=SharedSubnetworks(SOURCE, rows=512), targets={"a": "macs<=5"}, final_steps=0),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_a_pipeline_survives_json(made: Pipeline, whole: bool) -> None:
    found = again(made, whole=whole)
    assert found == made
    assert (found.recipe, found.to_json()) == (made.recipe, made.to_json())
    assert hash(found) == hash(made)
    deliver = found.of_kind(Deliver)[0]
    assert deliver.search is search_of(found)  # one stage, not two that are equal


def test_stages_have_the_names_of_their_kinds_or_of_the_file() -> None:
    made = Pipeline(Sum(), Sum(2), quick().stages[0], Sum(3))
    assert list(made.named) == ["sum", "sum-2", "search", "sum-3"]
    assert made.name_of(made.stages[3]) == "sum-3"
    assert [stage.seed for stage in made.of_kind(Sum)] == [1, 2, 3]
    data = {"stages": {"first": {"stage": "sum"}, "second": {"stage": "sum", "before": "first"}}}
    made = Pipeline.from_json(data)
    assert list(made.named) == ["first", "second"]
    assert made.named["second"].before is made.named["first"]  # type: ignore[attr-defined]
    assert again(made) == made
    assert list(again(made).named) == ["first", "second"]
    assert list(made.changed({"first": Sum(7)}).named) == ["first", "second"]


def test_what_has_a_default_may_be_left_out() -> None:
    data = stored()
    for name in ("searcher", "evaluator", "limits", "first", "cost_table"):
        del data["stages"]["search"][name]
    found = search_of(Pipeline.from_json(data))
    assert found.searcher is found.evaluator is found.cost_table is None
    assert found.limits == found.first == ()


def test_every_fault_is_reported_at_once() -> None:
    data = stored(tsak=1, training={"stepz": 3}, stop={"trials": 0}, searcher="halvin")
    data["stages"]["deliver"] |= {"keep": 0}
    with pytest.raises(IllegalDesign) as caught:
        Pipeline.from_json(data)
    found = {fault.where: fault.what for fault in caught.value.faults}
    assert {"stages.search.tsak", "stages.search.training.stepz", "stages.search.stop"} <= found.keys()
    assert "'task'" in found["stages.search.tsak"]
    assert "'steps'" in found["stages.search.training.stepz"]
    assert "'halving'" in found["stages.search.searcher"]


@pytest.mark.parametrize(
    ("change", "where", "told"),
    [
        ({"task": "sst2"}, "task", "sst2"),
        ({"task": {}}, "task.name", "missing"),
        ({"evaluator": {"name": "fulll"}}, "evaluator", "'full'"),
        ({"evaluator": {"proxies": []}}, "evaluator", "name"),
        ({"evaluator": {"name": "pretrained", "steps": 0}}, "evaluator.steps", "0"),
        ({"evaluator": {"name": "shared"}}, "evaluator.weights", "missing"),
        ({"evaluator": {"name": "shared", "weights": "summ"}}, "evaluator.weights", "'sum'"),
        ({"searcher": {"option": {}}}, "searcher", "name"),
        ({"stop": {}}, "stop", "stop"),
        ({"stage": "serch"}, "", "'search'"),
    ],
)
def test_a_fault_is_explained(change: dict[str, Any], where: str, told: str) -> None:
    data = stored(**change)
    del data["stages"]["deliver"]
    with pytest.raises(IllegalDesign) as caught:
        Pipeline.from_json(data)
    (fault,) = caught.value.faults
    assert fault.where == f"stages.search.{where}".rstrip(".")
    assert told in fault.what


@pytest.mark.parametrize("data", [{}, [], None, {"stages": {}}, {"stages": []}, {"stages": {"../x": {"stage": "sum"}}}])
def test_what_is_no_pipeline_is_refused(data: Any) -> None:
    with pytest.raises(IllegalDesign):
        Pipeline.from_json(data)


def test_other_versions_and_stages_out_of_order_are_refused() -> None:
    with pytest.raises(IllegalInput, match=f"version {VERSION}"):
        Pipeline.from_json({**stored(), "version": VERSION + 1})
    first = Sum()
    for stages in ((), (Sum(before=first), first), (Sum(before=Sum()),), (first, "sum")):
        with pytest.raises(IllegalInput):
            Pipeline(*stages)  # type: ignore[arg-type]
    data = WHOLE.to_json()["stages"]
    with pytest.raises(IllegalDesign, match="in the order sum, search, deliver"):
        Pipeline.from_json({"stages": dict(reversed(data.items()))})


def test_a_stage_that_is_replaced_is_read_by_those_after_it() -> None:
    made = WHOLE.changed({"sum": Sum(4)})
    search, deliver = made.stages[1:]
    assert isinstance(search, Search)
    assert isinstance(deliver, Deliver)
    assert search.cost_table == deliver.teacher == Sum(4)
    assert deliver.search is search
    assert made.recipe == "mine"


# --- options by their paths ----------------------------------------------------------------------------------------


def with_option(made: Pipeline, path: str, value: Any) -> Pipeline:
    return made.with_options([(path.split("."), value)])


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("search.seed", 3, 3),
        ("limits", ["params<=5"], ("params<=5",)),
        ("training.steps", 7, 7),
        ("search.training.length", None, None),
        ("searcher.eta", 2, searcher("halving", eta=2, min_steps=7)),
        ("searcher", "random", searcher("random")),
        ("evaluator", {"name": "proxy", "proxies": ["params"]}, UntrainedScores(("params",))),
        ("evaluator.steps", 9, PretrainFirst(9, "pydoc", 0.5)),
        ("evaluator", "full", TrainFully()),
    ],
)
def test_one_option_is_set_by_its_path(path: str, value: Any, expected: Any) -> None:
    stage: Any = search_of(with_option(WHOLE, path, value))
    words = path.removeprefix("search.").split(".")
    found = getattr(stage, words[0])
    if words[0] == "training":
        assert getattr(found, words[1]) == expected
    else:
        assert found == expected
    changed = {name for name in stage.__dataclass_fields__ if getattr(stage, name) != getattr(FULL, name)}
    assert changed <= {words[0]}


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("serch.seed", 3, "'search'"),
        ("search.sed", 3, "'seed'"),
        ("seed", 3, "sum.seed or search.seed"),
        ("search.seed", "x", "search.seed"),
        ("training.stepz", 3, "'steps'"),
        ("evaluator.text", "books", "evaluator.text"),
        ("cost_table", "absent", "earlier stage"),
        ("evaluator", "none", "evaluator"),
    ],
)
def test_an_option_that_cannot_be_set_is_refused(path: str, value: Any, told: str) -> None:
    with pytest.raises(IllegalDesign) as caught:
        with_option(WHOLE, path, value)
    assert told in str(caught.value)


def test_every_setting_that_is_wrong_is_reported_at_once() -> None:
    settings = {"serch.seed": 3, "search.sed": 3, "search.seed": "x", "training.steps": "y", "training.length": "z"}
    with pytest.raises(IllegalDesign) as caught:
        WHOLE.with_options([(path.split("."), value) for path, value in settings.items()])
    found = {fault.where for fault in caught.value.faults}
    assert found == {"serch.seed", "search.sed", "search.seed", "search.training.steps", "search.training.length"}


def test_settings_of_one_option_are_set_together_and_objects_stay() -> None:
    made = WHOLE.with_options([(["evaluator"], "full"), (["training", "steps"], 7), (["training", "length"], 9)])
    stage = search_of(made)
    assert (stage.evaluator, stage.training.steps, stage.training.length) == (TrainFully(), 7, 9)
    mine = object()
    stage = Given(mine)
    made = with_option(Pipeline(stage, Sum(before=stage)), "sum.steps", 7)
    assert made.stages[0].what is mine  # type: ignore[attr-defined]
    assert made.stages[1] == Sum(steps=7, before=stage)


# --- keys ----------------------------------------------------------------------------------------------------------


def test_keys_follow_options_inputs_and_contents_and_no_extents() -> None:
    first = Sum()
    made = Pipeline(first, Sum(2, before=first), Sum(3))
    keys = made.keys({})

    def changed(stage: Stage | None = None, name: str = "sum", **contents: Any) -> set[str]:
        other = made if stage is None else made.changed({name: stage})
        return {one for one, key in other.keys(contents).items() if key != keys[one]}

    assert changed() == set()
    assert changed(Sum(shown=9)) == set()
    assert changed(Sum(7)) == {"sum", "sum-2"}
    assert changed(Sum(7), "sum-3") == {"sum-3"}
    assert changed(sum={"rows": 3}) == {"sum", "sum-2"}


# --- files ---------------------------------------------------------------------------------------------------------


def test_a_file_holds_stages_a_recipe_or_a_training(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("stages:\n  one: {stage: sum, seed: 4}\n  two:\n    stage: sum\n    before: one\n")
    assert read_pipeline_file(path).stages == (Sum(4), Sum(before=Sum(4)))
    path.write_text("recipe: plain\ntask: mini-glue/rte\ntrials: 7\nset:\n  training.steps: 9\n  keep: 2\n")
    found = read_pipeline_file(path)
    expected = RECIPES.get("plain")(TaskChoice("mini-glue/rte"), trials=7)
    assert search_of(found) == replace(search_of(expected), training=TrainingChoice(steps=9))
    assert found.of_kind(Deliver)[0].keep == 2
    (tmp_path / "mine.json").write_text(json.dumps(found.to_json()))
    assert read_pipeline_file(tmp_path / "mine.json") == found
    path.write_text("recipe: spos\ntask: digits\nset:\n  super-network.learning-rate: 1e-4\n  super-network.seed: 3\n")
    (stage,) = read_pipeline_file(path).of_kind(TrainShared)
    assert (stage.learning_rate, stage.seed) == (1e-4, 3)
    path = tmp_path / "train.yaml"
    path.write_text(
        "stages:\n  train:\n    stage: train\n    source: bert-tiny\n    task: {name: digits}\n"
        "    training: {learning_rate: 1e-4, steps: 5}\n    judging: {test: true}\n",
        encoding="utf-8",
    )
    (stage,) = read_pipeline_file(path).of_kind(TrainModel)
    assert (stage.training.learning_rate, stage.training.steps, stage.training.batch) == (1e-4, 5, 32)
    assert stage.judging.test


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "stages"),
        ("- 3", "stages"),
        ("seed: 3", "recipe"),
        ("stages: {one: {stage: sun}}", "'sum'"),
        ("stages: {one: {stage: sum, sed: 3}}", "'seed'"),
        ("recipe: plan\ntask: x", "'plain'"),
        ("recipe: plain\ntask: x\ntrails: 3", "'trials'"),
        ("recipe: plain\ntask: x\nset: 3", "set"),
        ("a: [", "mine.yaml"),
        ("!!python/object/apply:os.system ['true']", "mine.yaml"),
    ],
)
def test_a_file_with_faults_is_refused_by_name(content: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(content)
    with pytest.raises((IllegalInput, IllegalDesign, UnknownName)) as caught:
        read_pipeline_file(path)
    assert told in str(caught.value)


def test_values_on_the_command_line_are_read_as_a_person_writes_them() -> None:
    numbers = {"3": 3, "0.5": 0.5, "1.5": 1.5, "1e-3": 0.001, "1e-5": 1e-5, "-2E+3": -2000.0}
    others = {"true": True, "null": None, "[a, b]": ["a", "b"], "[1e-3, 2]": [0.001, 2]}
    texts = {**numbers, **others, **{text: text for text in ("a: [", "{", "1e", "macs<=50%")}}
    assert {text: value_of(text) for text in texts} == texts
