from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes.autoformer import autoformer
from formwright.supernet.lessons import Labels
from formwright.supernet.rules import Uniform

DIGITS = TaskChoice("digits", rows=200)


def test_one_design_a_step_learns_in_entangled_weights_and_is_delivered_as_it_is() -> None:
    shared, search, deliver = autoformer(DIGITS, limits=("params<=20000",), steps=7, trials=5, seed=3).stages
    assert (shared.rule, shared.lesson, shared.steps, shared.teacher) == (Uniform(), Labels(), 7, None)
    assert (search.limits, search.searcher.NAME, search.stop.trials) == (("params<=20000",), "nsga2", 5)
    assert search.evaluator.weights is shared
    assert (deliver.weights, deliver.steps) == ("shared", 0)
    assert autoformer(DIGITS, finetune=9).stages[-1].steps == 9
