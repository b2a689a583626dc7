import pytest

from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes.magic import magic
from formwright.supernet.inner_lessons import Anchor
from formwright.supernet.lessons import Labels
from formwright.supernet.rules import Uniform, Walk

TEXT = TaskChoice("mini-glue/rte", rows=200)


@pytest.mark.parametrize("walk", [True, False])
@pytest.mark.parametrize("anchor", [True, False])
def test_walk_and_anchor_can_each_be_turned_off(walk: bool, anchor: bool) -> None:
    shared, search, deliver = magic(TEXT, walk=walk, anchor=anchor, steps=9).stages
    assert shared.rule == (Walk() if walk else Uniform())
    assert shared.lesson == (Anchor() if anchor else Labels())
    assert (shared.steps, search.space, deliver.weights) == (9, "magic-nano", "fresh")
