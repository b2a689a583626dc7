from types import SimpleNamespace
from typing import Any

import pytest

from formwright.cost import params
from formwright.evaluate.shared import RaceRules
from formwright.pipeline.shared_evaluator import SharedSubnetworks
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_shared import TrainShared


@pytest.mark.parametrize(("races", "rules"), [(True, RaceRules()), (False, None)])
def test_races_can_be_turned_off(races: bool, rules: RaceRules | None) -> None:
    trainer = SimpleNamespace(training=SimpleNamespace(device="cpu"))
    setting: Any = SimpleNamespace(costs=(params,), trainer=trainer, artifact=lambda stage: stage)
    evaluator: Any = SharedSubnetworks(TrainShared("autoformer-nano", TaskChoice("digits")), races=races).bind(setting)
    assert evaluator.rules == rules
