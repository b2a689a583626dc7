from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes.lighthubert import lighthubert
from formwright.supernet.lessons import TwoStage
from formwright.supernet.rules import Largest, Phases, Uniform


def test_the_largest_design_learns_first_and_teaches_then() -> None:
    shared, search, deliver = lighthubert(TaskChoice("fsdd"), limits=("params<=9",), steps=30).stages
    assert isinstance(shared.rule, Phases)
    assert isinstance(shared.lesson, TwoStage)
    assert shared.rule.rules == (Largest(), Uniform())
    assert shared.rule.ends(30) == [10, 30]
    assert round(shared.lesson.share * 30) == 10
    assert (search.searcher.NAME, search.limits) == ("random", ("params<=9",))
    assert (deliver.weights, deliver.steps) == ("shared", 0)
