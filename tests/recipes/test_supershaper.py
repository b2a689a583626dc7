from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes.supershaper import supershaper
from formwright.supernet.rules import Sandwich

TEXT = TaskChoice("pydoc/masked", rows=200)


def test_the_widest_and_the_narrowest_shape_learn_at_every_step() -> None:
    shared, search, deliver = supershaper(TEXT, limits=("params<=200k",), finetune=8).stages
    assert shared.rule == Sandwich(between=1)
    assert (shared.space, search.space, search.limits) == ("supershaper-nano", "supershaper-nano", ("params<=200k",))
    assert (deliver.weights, deliver.steps) == ("shared", 8)
    assert shared.training.learning_rate == search.training.learning_rate == 5e-4
