from types import ModuleType

import pytest

from formwright.cost import COSTS, macs
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice
from formwright.supernet.hull import find_hull


def test_one_super_network_is_searched_for_each_device(script: ModuleType) -> None:
    bounds = {"device 1": 25.0, "device 2": 4.0, "both": 1e6}
    shared, *searches = script.pipeline(TaskChoice("multi30k", data="somewhere"), 2, bounds).stages
    assert [one.limits for one in searches] == [("writing_30x5_ms<=25",), ("onnx_batch8_ms<=4",), ("macs<=1e+06",)]
    assert all(isinstance(one, Search) and one.evaluator.weights is shared and one.seed == 2 for one in searches)
    assert {script.TORCH, script.ONNX} <= set(COSTS.names())


def test_designs_that_are_ranked_differ_and_are_the_same_each_time(script: ModuleType) -> None:
    cards = script.drawn(8)
    assert len({card.digest for card in cards}) == 8
    assert cards == script.drawn(8)
    assert all(macs(card, 32) <= macs(find_hull(script.SPACE).largest, 32) for card in cards)


def test_the_ranking_is_by_perplexity_and_larger_designs_count_as_better(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "RESAMPLES", 50)
    rows = {f"alone-{number}": {"params": 100 * number, "perplexity": 50.0 - number} for number in range(10)}
    rows |= {"inherited-0": [90.0 - number for number in range(10)], "inherited-1": [float(n) for n in range(10)]}
    found = script.summary(rows, 10, 2)["ranking"]
    assert (found["designs"], found["seeds"]) == (10, 2)
    assert found["tau of size"][0] == pytest.approx(1.0)
    assert found["tau"][0] == pytest.approx(0.0)  # one network ranks as designs alone do, the other the wrong way round
