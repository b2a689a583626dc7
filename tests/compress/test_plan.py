"""How a budget of time is divided: never more than there is, and never less than makes sense."""

import json
from dataclasses import asdict, replace
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formwright.compress.plan import Bounds, Budget, Done, Plan, Speeds, left, within
from formwright.core.errors import IllegalInput

SPEEDS = Speeds(
    teacher=0.5,
    judging=2.0,
    network=1.5,
    answer=0.2,
    answers=1.0,
    validation=2.0,
    writing=16.0,
    alone=0.8,
    start=5.0,
    rows=1000,
)
USUAL = Plan(300, 600, 200, judged=1000)
BOUNDS = Bounds(Plan(20, 40, 30, scored=8, judged=100), Plan(300, 2000, 1000, judged=1000))

seconds = st.floats(1e-3, 20)
speeds = st.builds(Speeds, *(seconds,) * 9, st.integers(1, 5000))
numbers = [st.integers(20, 3000), st.integers(40, 3000), st.integers(30, 1000), st.integers(0, 300)]
plans = st.builds(Plan, *numbers, judged=st.integers(100, 5000))


def total(plan: Plan, speeds: Speeds = SPEEDS, workers: int = 2, models: int = 4) -> float:
    return sum(plan.seconds(speeds, workers, models).values())


def budget(hours: float) -> Budget:
    return Budget(hours, USUAL, BOUNDS, workers=2, models=4)


def test_the_stages_take_what_their_steps_take() -> None:
    found = Plan(10, 20, 30, 5, scored=6).seconds(SPEEDS, workers=2, models=4)
    assert found == {
        "teacher": 5.0 + 3.0 + 3 * 2.0 + 16.0,  # judged, and then tested and measured as delivered models are
        "super-network": 30.0 + 1.0 + 2.0,  # the teacher is asked once for every row
        "search": 5.0 + 30.0,
        "delivery": 5.0 + 4 * (16.0 + 2 * 2.0 + 4.0),
    }
    few = Plan(10, 3, 30, judged=100).seconds(SPEEDS, workers=2, models=4)
    assert few["super-network"] == pytest.approx(4.5 + 0.6 + 2.0)  # or for those that are shown
    assert few["search"] == pytest.approx(5.0 + 3.0)  # a tenth of the rows


@given(plans)
def test_a_plan_survives_json(plan: Plan) -> None:
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_what_is_no_plan_is_refused() -> None:
    for data in ([], {"teacher_steps": 3}, {**USUAL.to_json(), "more": 1}):
        with pytest.raises(IllegalInput, match="a stored Plan must have the fields"):
            Plan.from_json(data)


@given(plans, speeds, st.floats(0.001, 100), st.integers(1, 8), st.integers(1, 6))
def test_a_plan_keeps_to_the_budget_and_to_its_bounds(
    usual: Plan, speeds: Speeds, hours: float, workers: int, models: int
) -> None:
    least = replace(BOUNDS.least, finetune_steps=min(usual.finetune_steps, 1))
    most = replace(usual, network_steps=5 * usual.network_steps, evaluations=1000)
    assume(total(least, speeds, workers, models) <= 0.9 * 3600 * hours)
    found = within(Budget(hours, usual, Bounds(least, most), workers, models), speeds)
    assert total(found, speeds, workers, models) <= 3600 * hours * 0.9 * (1 + 1e-9)
    for name, value in asdict(found).items():
        assert asdict(least)[name] <= value <= asdict(most)[name], name


def test_all_stages_are_scaled_alike() -> None:
    found = within(budget(0.25), SPEEDS)
    shares = [value / asdict(USUAL)[name] for name, value in asdict(found).items() if name != "finetune_steps"]
    assert shares == pytest.approx([shares[0]] * 5, rel=0.05)
    assert 0.8 * 3600 * 0.25 < total(found) <= 0.9 * 3600 * 0.25


def test_more_time_never_plans_less() -> None:
    found = [within(budget(hours), SPEEDS) for hours in (0.07, 0.1, 0.5, 1, 3, 10)]
    for before, after in pairwise(found):
        assert all(asdict(after)[name] >= value for name, value in asdict(before).items())
    assert found[-1] == BOUNDS.most


def test_time_that_is_left_goes_to_the_super_network() -> None:
    bounds = Bounds(BOUNDS.least, Plan(300, 10_000, 200, judged=1000))
    found = within(replace(budget(2.0), bounds=bounds), SPEEDS)
    assert (found.teacher_steps, found.evaluations) == (300, 200)
    assert found.network_steps > USUAL.network_steps
    assert total(found) > 0.89 * 3600 * 2


def test_too_little_time_plans_the_least() -> None:
    assert within(budget(0.01), SPEEDS) == BOUNDS.least
    needed = total(BOUNDS.least) / 3600 / 0.9
    assert within(budget(1.0001 * needed), SPEEDS) == BOUNDS.least


def test_what_is_done_stays_and_the_rest_gets_what_is_left() -> None:
    """The teacher took twice as long as planned: the other stages have less, and it stays as it was."""
    plan = within(budget(0.5), SPEEDS)
    late = Done(("teacher",), 0, 2 * plan.seconds(SPEEDS, 2, 4)["teacher"])
    found = within(budget(0.5), SPEEDS, plan, late)
    assert (found.teacher_steps, found.scored) == (plan.teacher_steps, plan.scored)
    assert found.network_steps < plan.network_steps
    assert found.evaluations < plan.evaluations
    assert late.seconds + sum(left(found, SPEEDS, budget(0.5), late).values()) <= 0.9 * 1800
    trained = Done(("teacher", "super-network"), 0, 600.0)
    assert within(budget(0.5), SPEEDS, plan, trained).network_steps == plan.network_steps


def test_a_training_under_way_is_never_cut_below_what_it_has_done() -> None:
    plan = within(budget(0.5), SPEEDS)
    slow = replace(SPEEDS, teacher=100 * SPEEDS.teacher)
    found = within(budget(0.5), slow, plan, Done((), 70, 1700.0))
    assert found.teacher_steps == 70
    assert found.network_steps == BOUNDS.least.network_steps


def test_a_faster_machine_is_planned_more_for_what_is_left() -> None:
    slow = replace(SPEEDS, teacher=10 * SPEEDS.teacher, network=10 * SPEEDS.network, validation=10 * SPEEDS.validation)
    plan = within(budget(0.5), slow)
    found = within(budget(0.5), SPEEDS, plan, Done((), 10, 60.0))
    assert found.teacher_steps > 3 * plan.teacher_steps
    assert found.network_steps > 3 * plan.network_steps
