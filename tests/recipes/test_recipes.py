"""Every recipe keeps the contract, and is found by its name."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.study.cases import new_log

from formwright.core.errors import IllegalDesign, IllegalInput, UnknownName
from formwright.pipeline.draw_multiples import DrawMultiples
from formwright.pipeline.files import compose
from formwright.pipeline.fine_tune import FineTune
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.runner import prepare
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes import RECIPES, Recipe
from formwright.recipes.recipe import recipe
from formwright.study.study import StudySetup
from formwright.testing.recipe_contract import RecipeContract

TEXT = TaskChoice("mini-glue/rte")


def searched(made: Pipeline, **changes: Any) -> Pipeline:
    """Give a pipeline whose search has some options changed."""
    stage = made.of_kind(Search)[0]
    return made.changed({made.name_of(stage): replace(stage, **changes)})


def studied(made: Pipeline, folder: Path) -> StudySetup:
    """Settle the options of a recipe's search, check it, and give its study."""
    run = PipelineRun(made, folder / "run")
    prepare(run)
    search = run.pipeline.of_kind(Search)[0]
    return search.study(run.stage(search), new_log(folder), folder)


def contract(name: str, settled: bool = True, **arguments: Any) -> type[RecipeContract]:
    """Give the checks of a recipe by name."""
    given = arguments or {"task": TEXT}
    kept = {"recipe": RECIPES.get(name), "settled": settled, "arguments": lambda _: dict(given)}
    return type(f"Test{name.title().replace('-', '')}", (RecipeContract,), kept)


TestFlexibert = contract("flexibert")
TestAutobertZero = contract("autobert-zero")
TestEvolvedTransformer = contract("evolved-transformer", task=TaskChoice("translation"))
TestEftnas = contract("eftnas", settled=False)
TestDynabert = contract("dynabert", settled=False)
TestNasBert = contract("nas-bert", settled=False, model="some/bert", sizes="5M,8ms")
TestSpos = contract("spos", task=TaskChoice("digits", rows=200))
TestOfa = contract("ofa", task=TaskChoice("digits", rows=200))
TestHat = contract("hat", task=TaskChoice("translation", rows=120))
TestLinas = contract("linas", task=TaskChoice("digits", rows=200))
TestAutoformer = contract("autoformer", task=TaskChoice("digits", rows=200))
TestSupershaper = contract("supershaper")
TestAutotinybert = contract("autotinybert")
TestAutotinybertKd = contract("autotinybert-kd")
TestMagic = contract("magic")
TestFastBertSearch = contract("fast-bert-search")
TestLighthubert = contract("lighthubert", settled=False, task=TaskChoice("fsdd"))


class TestPlain(RecipeContract):
    recipe = RECIPES.get("plain")

    def arguments(self) -> dict[str, Any]:
        return {"task": TEXT}

    def test_a_list_of_methods_can_say_what_it_is(self) -> None:
        assert self.recipe.about  # it is no published method


def test_every_recipe_is_checked() -> None:
    checked = {kind.recipe.name for kind in RecipeContract.__subclasses__() if "recipe" in vars(kind)}
    assert set(RECIPES.names()) <= checked


def test_an_unknown_recipe_has_a_nearest_name() -> None:
    with pytest.raises(UnknownName, match=r"no recipe called 'flexbert'. Nearest: 'flexibert'"):
        RECIPES.get("flexbert")


def test_plain_values_compose_a_recipe() -> None:
    made = compose("flexibert", {"task": {"name": "rows.csv", "text": ["words"], "label": "b"}, "trials": 7})
    search = made.of_kind(Search)[0]
    assert search.task == TaskChoice("rows.csv", text=("words",), label="b")
    assert search.stop.trials == 7
    assert compose("plain", {"task": "mini-glue/rte"}) == RECIPES.get("plain")(TEXT)
    with pytest.raises(IllegalInput, match="task"):
        compose("plain", {})


@pytest.mark.parametrize("wrong", [{"latency": "fast"}, {"steps": 2.5}, {"trials": [3]}, {"seed": None, "steps": "x"}])
def test_options_of_another_type_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(IllegalDesign, match=f"autotinybert.*{list(wrong)[-1]}".replace(".*", r"(.|\n)*")):
        compose("autotinybert", {"task": "mini-glue/sst2", **wrong})


def test_a_start_that_names_no_model_is_refused() -> None:
    with pytest.raises(IllegalInput, match="start"):
        compose("autotinybert", {"task": "mini-glue/sst2", "start": 5})


def test_hints_that_only_a_type_checker_knows_leave_options_as_they_are() -> None:
    def composed(task: TaskChoice, *, trials: "OnlyForTypeCheckers" = 3) -> Pipeline:  # type: ignore[name-defined]  # noqa: F821
        return RECIPES.get("plain")(task, trials=trials)

    made = recipe("mine", "a recipe of another package")(composed)
    assert made(TEXT, trials=9).of_kind(Search)[0].stop.trials == 9


def test_a_limit_alone_is_a_list_of_one() -> None:
    made = compose("autotinybert", {"task": "mini-glue/sst2", "limits": "params<=5k"})
    assert made.of_kind(Search)[0].limits == ("params<=5k",)


@pytest.mark.parametrize("widths", ["0.5,1.0", "0.5, 1", [0.5, 1.0], (0.5, 1.0)])
def test_numbers_of_a_list_may_be_written_as_a_text(widths: Any) -> None:
    made = RECIPES.get("dynabert")(TEXT, model="there", widths=widths, depths=1.0)
    *_, both = made.of_kind(DrawMultiples)
    assert (both.widths, both.depths) == ((0.5, 1.0), (1.0,))
    with pytest.raises(IllegalDesign, match="widths"):
        RECIPES.get("dynabert")(TEXT, model="there", widths="0.5,wide")


def test_a_training_may_be_written_as_its_options() -> None:
    (teacher,) = RECIPES.get("eftnas")(TEXT, model="there", training={"batch": 8}).of_kind(FineTune)
    (usual,) = RECIPES.get("eftnas")(TEXT, model="there").of_kind(FineTune)
    assert teacher.training == replace(usual.training, batch=8)
    with pytest.raises(IllegalDesign, match="bach"):
        RECIPES.get("eftnas")(TEXT, model="there", training={"bach": 8})


@pytest.mark.parametrize(("name", "wrong"), [("hat", {"weights": "shard"}), ("eftnas", {"order": "firstorder"})])
def test_choices_are_checked(name: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(IllegalDesign, match=next(iter(wrong))):
        RECIPES.get(name)(TEXT, **wrong)


def test_a_recipe_is_a_function_with_what_lists_say_of_it() -> None:
    made = Recipe(lambda task, *, trials=3: RECIPES.get("plain")(task, trials=trials), "mine", "my own")
    assert made.options == ["task", "trials"]
    assert made(TEXT, trials=5).recipe == "mine"
