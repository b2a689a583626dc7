"""Every recipe keeps the contract, and is found by its name."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.study.cases import new_log

from formwright.core.errors import IllegalInput, UnknownName
from formwright.pipeline.files import compose
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.runner import prepare
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes import RECIPES, Recipe
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
TestNasBert = contract("nas-bert", settled=False, model="some/bert", sizes="5M,8ms")
TestSpos = contract("spos", task=TaskChoice("digits", rows=200))
TestOfa = contract("ofa", task=TaskChoice("digits", rows=200))


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


def test_a_recipe_is_a_function_with_what_lists_say_of_it() -> None:
    made = Recipe(lambda task, *, trials=3: RECIPES.get("plain")(task, trials=trials), "mine", "my own")
    assert made.options == ["task", "trials"]
    assert made(TEXT, trials=5).recipe == "mine"
