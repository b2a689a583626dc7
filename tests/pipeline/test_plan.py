"""How a budget of time is divided: never more than there is, and never less than makes sense."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formwright.pipeline.plan import SLOWED, Done, PacedTraining, Plan, Speeds, TimeBudget, WorkAmount, left, within

TRAININGS = {"teacher": PacedTraining(), "network": PacedTraining(included=("answer",), takes_rest=True)}
AMOUNTS = {
    "teacher": {"steps": WorkAmount(300, 20, 300), "scored": WorkAmount(64, 8, 64)},
    "network": {"steps": WorkAmount(600, 40, 2000)},
    "search": {"trials": WorkAmount(200, 30, 1000), "rows": WorkAmount(1000, 100, 1000)},
    "delivery": {"steps": WorkAmount(0, 0, 0)},
}
SPEEDS: dict[str, dict[str, float]] = {
    "teacher": {"step": 0.5, "judging": 2.0, SLOWED: 1.0},
    "network": {"step": 1.5, "answer": 0.2, "answers": 1.0, SLOWED: 1.0},
    "search": {"validation": 2.0, SLOWED: 1.0},
    "delivery": {"writing": 16.0, "step": 0.8, SLOWED: 1.0},
}


def estimate(plan: Plan, speeds: Speeds) -> dict[str, float]:
    """Give the seconds of a toy pipeline, which is like a compression."""
    teacher, network, search, last = (plan[name] for name in AMOUNTS)
    heard = min(network["steps"] * speeds["network"]["answer"], speeds["network"]["answers"])
    trained = (teacher["steps"] + teacher["scored"]) * speeds["teacher"]["step"]
    return {
        "teacher": trained + speeds["teacher"]["judging"],
        "network": network["steps"] * speeds["network"]["step"] + heard,
        "search": 5.0 + search["trials"] * search["rows"] / 1000 * speeds["search"]["validation"] / 2,
        "delivery": 4 * (speeds["delivery"]["writing"] + last["steps"] * speeds["delivery"]["step"]),
    }


def budget(hours: float | None, amounts: Mapping[str, Mapping[str, WorkAmount]] = AMOUNTS) -> TimeBudget:
    return TimeBudget(hours, amounts, estimate, TRAININGS)


def bound(side: str) -> dict[str, dict[str, int]]:
    return {stage: {name: getattr(one, side) for name, one in some.items()} for stage, some in AMOUNTS.items()}


def total(plan: Plan, speeds: Speeds = SPEEDS) -> float:
    return sum(estimate(plan, speeds).values())


def slower(times: float, *stages: str) -> dict[str, dict[str, float]]:
    """Give the speeds of a machine on which the work of some stages, or of all, takes longer."""
    chosen = stages or tuple(SPEEDS)
    return {
        stage: {name: times * one if stage in chosen else one for name, one in some.items()}
        for stage, some in SPEEDS.items()
    }


seconds = st.floats(1e-3, 20)
speeds = st.fixed_dictionaries(
    {stage: st.fixed_dictionaries(dict.fromkeys(some, seconds)) for stage, some in SPEEDS.items()}
)


@given(speeds, st.floats(0.001, 100), st.integers(20, 3000), st.integers(0, 300))
def test_a_plan_keeps_to_the_budget_and_to_its_bounds(found: Any, hours: float, steps: int, last: int) -> None:
    amounts = {
        **AMOUNTS,
        "teacher": {"steps": WorkAmount(steps, 20, steps), "scored": WorkAmount(64, 8, 64)},
        "delivery": {"steps": WorkAmount(last, min(last, 1), last)},
    }
    least = {stage: {name: one.least for name, one in some.items()} for stage, some in amounts.items()}
    assume(total(least, found) <= 0.9 * 3600 * hours)
    plan = within(budget(hours, amounts), found)
    assert total(plan, found) <= 3600 * hours * 0.9 * (1 + 1e-9)
    for stage, some in amounts.items():
        for name, one in some.items():
            assert one.least <= plan[stage][name] <= one.most, (stage, name)


def test_a_plan_scales_all_stages_alike_and_more_time_never_plans_less() -> None:
    found = within(budget(0.25), SPEEDS)
    shares = [
        found[stage][name] / one.usual for stage, some in AMOUNTS.items() for name, one in some.items() if one.usual
    ]
    assert shares == pytest.approx([shares[0]] * 5, rel=0.05)
    assert 0.8 * 3600 * 0.25 < total(found) <= 0.9 * 3600 * 0.25
    found = [within(budget(hours), SPEEDS) for hours in (0.07, 0.1, 0.5, 1, 3, 10)]
    for before, after in pairwise(found):
        assert all(after[stage][name] >= one for stage, some in before.items() for name, one in some.items())
    assert found[-1] == bound("most")
    assert within(budget(0.01), SPEEDS) == bound("least")
    needed = total(bound("least")) / 3600 / 0.9
    assert within(budget(1.0001 * needed), SPEEDS) == bound("least")
    assert budget(None).usual == bound("usual")
    assert replace(budget(None), hours=2.0).seconds == pytest.approx(0.9 * 7200)


def test_time_that_is_left_goes_to_the_training_that_takes_it() -> None:
    amounts = {**AMOUNTS, "network": {"steps": WorkAmount(600, 40, 10_000)}}
    amounts["search"] = {**AMOUNTS["search"], "trials": WorkAmount(200, 30, 200)}
    found = within(budget(2.0, amounts), SPEEDS)
    assert (found["teacher"]["steps"], found["search"]["trials"]) == (300, 200)
    assert found["network"]["steps"] > 600
    assert total(found) > 0.89 * 3600 * 2


def test_what_is_left_is_planned_by_what_is_done() -> None:
    """The teacher took twice as long as planned: the other stages have less, and it stays as it was."""
    plan = within(budget(0.5), SPEEDS)
    late = Done(("teacher",), 0, 2 * estimate(plan, SPEEDS)["teacher"])
    found = within(budget(0.5), SPEEDS, plan, late)
    assert found["teacher"] == plan["teacher"]
    assert found["network"]["steps"] < plan["network"]["steps"]
    assert found["search"]["trials"] < plan["search"]["trials"]
    assert late.seconds + sum(left(found, SPEEDS, budget(0.5), late).values()) <= 0.9 * 1800
    trained = Done(("teacher", "network"), 0, 600.0)
    assert within(budget(0.5), SPEEDS, plan, trained)["network"] == plan["network"]
    found = within(budget(0.5), slower(100, "teacher"), plan, Done((), 70, 1700.0))
    assert found["teacher"]["steps"] == 70
    assert found["network"] == bound("least")["network"]
    plan = within(budget(0.5), slower(10))
    found = within(budget(0.5), SPEEDS, plan, Done((), 10, 60.0))
    assert found["teacher"]["steps"] > 3 * plan["teacher"]["steps"]
    assert found["network"]["steps"] > 3 * plan["network"]["steps"]
    made = budget(1.0)
    whole = estimate(made.usual, SPEEDS)
    found = left(made.usual, SPEEDS, made, Done(("teacher",), 100, 10.0))
    assert found == whole | {"teacher": 0.0, "network": pytest.approx(whole["network"] - 100 * 1.5)}
    assert left(made.usual, SPEEDS, made, Done(("teacher",), 10**6, 10.0))["network"] == 0.0
