from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes.lighthubert import lighthubert
from formwright.supernet.inner_lessons import HiddenStates
from formwright.supernet.lessons import Labels
from formwright.supernet.rules import Largest, Uniform


def test_the_largest_design_learns_first_and_teaches_then() -> None:
    largest, shared, search, deliver = lighthubert(TaskChoice("fsdd"), limits=("params<=9",), steps=30).stages
    assert (largest.rule, largest.lesson, largest.steps) == (Largest(), Labels(), 10)
    assert (shared.rule, shared.lesson, shared.steps) == (Uniform(), HiddenStates(labels=0.5, scores=0.5), 20)
    assert shared.teacher is largest
    assert (search.searcher.NAME, search.limits) == ("random", ("params<=9",))
    assert search.searcher.by == "gene"
    assert (deliver.weights, deliver.steps) == ("shared", 0)
