from formwright.pipeline.draw_menu import DrawMenu
from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes.fast_bert_search import fast_bert_search

TEXT = TaskChoice("mini-glue/rte", rows=200)


def test_a_profile_draws_the_menu_before_anything_is_trained() -> None:
    menu, shared, search, deliver = fast_bert_search(TEXT, keep=0.4, limits=("latency_ms<=2",), finetune=3).stages
    assert menu == DrawMenu("fast-bert-nano", TEXT, 0.4)
    assert shared.space is menu
    assert search.space is menu
    assert (search.limits, deliver.weights, deliver.steps) == (("latency_ms<=2",), "shared", 3)
