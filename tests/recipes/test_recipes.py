import json

import pytest

from formwright.core.errors import UnknownName
from formwright.recipes import RECIPES, Recipe
from formwright.study.assemble import refuse_faulty
from formwright.study.config import Config, TaskChoice
from formwright.study.stop import Stop

TASKS = {"evolved-transformer": "translation"}  # where a recipe is for another kind of task
GOALS = {"translation": "perplexity:min"}


def study(recipe: Recipe, task: str = "mini-glue/rte") -> Config:
    """Make the study that the command line makes of a recipe."""
    return Config(
        recipe.space,
        TaskChoice(task),
        (GOALS.get(task, "accuracy:max"), *(f"{cost}:min" for cost in recipe.minimise)),
        Stop(recipe.trials),
        recipe.limits,
        recipe.searcher,
        recipe.options,
        recipe.evaluator,
        training=recipe.training,
        pretraining=recipe.pretraining,
        first=recipe.first_of(recipe.space),
    )


@pytest.mark.parametrize("name", RECIPES.names())
def test_every_recipe_makes_a_study_that_can_be_worked_on_and_resumed(name: str) -> None:
    config = study(RECIPES.get(name), TASKS.get(name, "mini-glue/rte"))
    refuse_faulty(config)
    assert Config.from_json(json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.parametrize("name", RECIPES.names())
def test_every_recipe_says_what_it_is(name: str) -> None:
    assert RECIPES.get(name).about


def test_an_unknown_recipe_has_a_nearest_name() -> None:
    with pytest.raises(UnknownName, match=r"no recipe called 'flexbert'. Nearest: 'flexibert'"):
        RECIPES.get("flexbert")
