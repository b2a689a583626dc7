"""How a budget of time is divided: never more than there is, and never less than makes sense."""

import json
from dataclasses import asdict, replace
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formwright.compress.plan import Bounds, Plan, Speeds, within
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


def test_a_plan_of_an_earlier_version_is_read() -> None:
    earlier = {"teacher_steps": 3, "network_steps": 4, "evaluations": 5, "finetune_steps": 6}
    assert Plan.from_json(earlier) == Plan(3, 4, 5, 6)  # on all batches and by all rows


def test_a_machine_that_is_busy_now_has_the_least_planned() -> None:
    """Though that takes longer; but not where it would take too long on an idle one."""
    busy = replace(SPEEDS, slowed=2.0)
    least = total(BOUNDS.least)
    assert within(0.6 * least / 3600 / 0.9, USUAL, BOUNDS, busy, 2, 4) == BOUNDS.least
    with pytest.raises(IllegalInput, match="hours are too few here"):
        within(0.4 * least / 3600 / 0.9, USUAL, BOUNDS, busy, 2, 4)


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
    found = within(hours, usual, Bounds(least, most), speeds, workers, models)
    assert total(found, speeds, workers, models) <= 3600 * hours * 0.9 * (1 + 1e-9)
    for name, value in asdict(found).items():
        assert asdict(least)[name] <= value <= asdict(most)[name], name


def test_all_stages_are_scaled_alike() -> None:
    found = within(0.25, USUAL, BOUNDS, SPEEDS, 2, 4)
    shares = [value / asdict(USUAL)[name] for name, value in asdict(found).items() if name != "finetune_steps"]
    assert shares == pytest.approx([shares[0]] * 5, rel=0.05)
    assert 0.8 * 3600 * 0.25 < total(found) <= 0.9 * 3600 * 0.25


def test_more_time_never_plans_less() -> None:
    found = [within(hours, USUAL, BOUNDS, SPEEDS, 2, 4) for hours in (0.07, 0.1, 0.5, 1, 3, 10)]
    for before, after in pairwise(found):
        assert all(asdict(after)[name] >= value for name, value in asdict(before).items())
    assert found[-1] == BOUNDS.most


def test_time_that_is_left_goes_to_the_super_network() -> None:
    bounds = Bounds(BOUNDS.least, Plan(300, 10_000, 200, judged=1000))
    found = within(2.0, USUAL, bounds, SPEEDS, 2, 4)
    assert (found.teacher_steps, found.evaluations) == (300, 200)
    assert found.network_steps > USUAL.network_steps
    assert total(found) > 0.89 * 3600 * 2


def test_too_little_time_is_refused_with_the_least_that_will_do() -> None:
    with pytest.raises(IllegalInput, match=r"^0\.01 hours are too few here: the least takes about (\S+); give --hours"):
        within(0.01, USUAL, BOUNDS, SPEEDS, 2, 4)
    needed = total(BOUNDS.least) / 3600 / 0.9
    assert within(1.0001 * needed, USUAL, BOUNDS, SPEEDS, 2, 4) == BOUNDS.least


@given(speeds, st.integers(1, 6))
def test_what_is_told_to_be_enough_is_enough(speeds: Speeds, models: int) -> None:
    with pytest.raises(IllegalInput) as caught:
        within(1e-9, USUAL, BOUNDS, speeds, 2, models)
    needed = float(str(caught.value).split("about ")[1].split(";")[0])
    within(needed, USUAL, BOUNDS, speeds, 2, models)
