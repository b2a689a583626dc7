import math

import pytest

from formwright.compose import compose_search
from formwright.core.errors import IllegalInput
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes.autotinybert import autotinybert, autotinybert_kd
from formwright.recipes.recipe import Recipe
from formwright.supernet.inner_lessons import HiddenStates
from formwright.supernet.rules import Largest, Uniform

TEXT = TaskChoice("mini-glue/rte", rows=200)


@pytest.mark.parametrize("recipe", [autotinybert, autotinybert_kd], ids=lambda recipe: recipe.name)
def test_designs_lie_in_a_band_around_the_latency(recipe: Recipe) -> None:
    *_, search, deliver = recipe(TEXT, latency=2.0, finetune=5).stages
    bounds = {limit.partition("=")[0][-1]: float(limit.partition("=")[2]) for limit in search.limits}
    assert bounds == {">": pytest.approx(1.7), "<": pytest.approx(2.2)}
    assert (deliver.weights, deliver.steps) == ("shared", 5)
    assert recipe(TEXT).stages[-2].limits == ()


@pytest.mark.parametrize("recipe", [autotinybert, autotinybert_kd], ids=lambda recipe: recipe.name)
@pytest.mark.parametrize("latency", [0, 0.0, -1.0, math.nan, math.inf])
def test_a_latency_that_no_design_has_is_refused(recipe: Recipe, latency: float) -> None:
    with pytest.raises(IllegalInput, match="latency"):
        recipe(TEXT, latency=latency)


@pytest.mark.parametrize("name", ["autotinybert", "autotinybert-kd"])
def test_further_limits_are_added_to_the_band(name: str) -> None:
    settings = [(["latency"], 2.0)]
    band = compose_search("", TEXT, recipe=name, settings=settings).of_kind(Search)[0].limits
    both = compose_search("", TEXT, recipe=name, settings=settings, limits=["params<=400k"]).of_kind(Search)[0].limits
    assert len(band) == 2
    assert both == (*band, "params<=400k")


def test_a_teacher_has_a_space_and_a_training_of_its_own() -> None:
    alone, *_ = autotinybert(TEXT, steps=10).stages
    assert (alone.rule, alone.space, alone.teacher) == (Uniform(), "autotinybert-nano", None)
    largest, shared, *_ = autotinybert_kd(TEXT, steps=10).stages
    assert (largest.rule, largest.steps, largest.space) == (Largest(), 5, "autotinybert-kd-nano")
    assert shared.teacher is largest
    assert shared.lesson.NEEDS_TEACHER


def test_the_teacher_weighs_as_much_as_the_labels() -> None:
    shared = autotinybert_kd(TaskChoice("mini-glue/sst2")).of_kind(TrainShared)[-1]
    assert shared.lesson == HiddenStates(labels=0.5, scores=0.5)
