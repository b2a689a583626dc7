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


def test_what_is_said_comes_before_its_options() -> None:
    recipe = Recipe(searcher="nsga2", options={"population": 8, "mutants": 1})
    assert recipe.options_of("nsga2", {"population": 9}) == {"population": 9, "mutants": 1}
    assert recipe.options_of("random", {"population": 9}) == {"population": 9}


def test_the_searcher_inside_its_own_keeps_the_options_that_nobody_says_otherwise() -> None:
    inner = {"searcher": "boshnas", "options": {"acquire": "gobi-nearest"}, "patience": 5}
    recipe = Recipe(searcher="coarse-to-fine", options=inner)

    def options(**said: object) -> object:
        return recipe.options_of("coarse-to-fine", said)

    one_hot = {"coordinates": "one-hot"}
    assert options(options=one_hot) == {**inner, "options": {"acquire": "gobi-nearest", **one_hot}}
    assert options(searcher="boshnas", options=one_hot) == options(options=one_hot)
    # another one does not know them
    assert options(searcher="random") == {"searcher": "random", "patience": 5}
    assert options(searcher="forest", options={"trees": 9}) == {**inner, "searcher": "forest", "options": {"trees": 9}}
    assert options(options=5) == {**inner, "options": 5}  # which the searcher refuses
    assert recipe.options == inner


def test_first_designs_are_those_of_the_space_that_is_searched() -> None:
    recipe = Recipe(space="small", first={"small": ({"layers": 1},), "large": ({"layers": 9},)})
    assert recipe.first_of("small") == ({"layers": 1},)
    assert recipe.first_of("large") == ({"layers": 9},)
    assert recipe.first_of("other") == ()
