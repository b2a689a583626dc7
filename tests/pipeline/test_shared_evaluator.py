from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from formwright.core.errors import IllegalInput
from formwright.cost import params
from formwright.evaluate.races import RaceRules
from formwright.pipeline.shared_evaluator import SharedSubnetworks
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.space.zoo import load_space

KINDS = {"mini-glue/sst2": "sequence-classification", "mini-squad": "span-extraction"}


@pytest.mark.parametrize(("races", "rules"), [(True, RaceRules()), (False, None)])
def test_races_can_be_turned_off(races: bool, rules: RaceRules | None) -> None:
    trainer = SimpleNamespace(training=SimpleNamespace(device="cpu"))
    setting: Any = SimpleNamespace(costs=(params,), trainer=trainer, artifact=lambda stage: stage)
    evaluator: Any = SharedSubnetworks(TrainShared("autoformer-nano", TaskChoice("digits")), races=races).bind(setting)
    assert evaluator.rules == rules


@pytest.mark.parametrize(("task", "least"), [("mini-glue/sst2", 512), ("mini-squad", 4_000)])
def test_fewer_rows_judge_a_design_only_where_rows_have_one_answer_each(task: str, least: int) -> None:
    stage: Any = SimpleNamespace(amounts=lambda run: {}, held_out=lambda run: 4_000, task=TaskChoice(task))
    run: Any = SimpleNamespace(task=lambda choice: SimpleNamespace(kind=KINDS[choice.name]))
    evaluator = SharedSubnetworks(stage)
    amounts = evaluator.amounts(100, run)
    assert amounts is not None
    assert (amounts["rows"].usual, amounts["rows"].least, amounts["rows"].most) == (4_000, least, 4_000)
    asked: Any = SimpleNamespace(task=lambda choice: SimpleNamespace(name=choice.name, kind=KINDS[choice.name]))
    some = SharedSubnetworks(SimpleNamespace(task=TaskChoice(task)), rows=100)  # type: ignore[arg-type]
    with pytest.raises(IllegalInput, match="all validation rows") if least == 4_000 else nullcontext():
        some.check_space(asked, load_space("flexibert-nano"))
    assert evaluator.seconds({"trials": 10, "rows": 1_000}, {"validation": 2.0}, run) == 10 * 2.0 / 4
