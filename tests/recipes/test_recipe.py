from formwright.recipes import Recipe
from formwright.study.config import PretrainingChoice, TrainingChoice


def test_the_empty_recipe_sets_nothing_of_its_own() -> None:
    recipe = Recipe()
    assert (recipe.space, recipe.searcher, recipe.evaluator, recipe.options) == ("", "", "", {})
    assert (recipe.training, recipe.pretraining, recipe.trials) == (TrainingChoice(), PretrainingChoice(), 30)


def test_options_are_for_its_own_searcher_alone() -> None:
    recipe = Recipe(searcher="nsga2", options={"population": 8})
    assert recipe.options_of("nsga2") == {"population": 8}
    assert recipe.options_of("random") == {}
    recipe.options_of("nsga2")["population"] = 9
    assert recipe.options == {"population": 8}


def test_first_designs_are_those_of_the_space_that_is_searched() -> None:
    recipe = Recipe(space="small", first={"small": ({"layers": 1},), "large": ({"layers": 9},)})
    assert recipe.first_of("small") == ({"layers": 1},)
    assert recipe.first_of("large") == ({"layers": 9},)
    assert recipe.first_of("other") == ()
