"""How a budget of time becomes steps."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.compress.blockwise.plan import Plan, Shape, Speeds, revised, within
from formwright.core.errors import IllegalInput

USUAL, SPEEDS, SHAPE = Plan(300, 1000), Speeds(0.1, 5.0, 0.2, 30.0), Shape(blocks=3, rounds=4, models=3, workers=2)


def test_seconds_are_added_up() -> None:
    seconds = USUAL.seconds(SPEEDS, SHAPE)
    assert seconds == {
        "preparation": 30.0,
        "blocks": pytest.approx(2 * 5 * (300 * 0.1 + 5.0)),  # three blocks take two turns of two processes
        "students": pytest.approx(2 * 1000 * 0.2),
    }


@given(st.floats(0.05, 50.0))
def test_a_plan_keeps_its_budget(hours: float) -> None:
    plan = within(hours, USUAL, SPEEDS, SHAPE)
    taken = sum(plan.seconds(SPEEDS, SHAPE).values())
    assert taken <= 3600 * hours * 0.9 + 1e-6
    more = sum(plan.scaled(1.02).seconds(SPEEDS, SHAPE).values())
    assert more > 3600 * hours * 0.85 or plan.round_steps == 50 * USUAL.round_steps


def test_too_few_hours_plan_the_least() -> None:
    assert within(0.001, USUAL, SPEEDS, SHAPE) == Plan(10, 10)


def test_students_get_the_time_that_the_blocks_left() -> None:
    plan = within(1.0, USUAL, SPEEDS, SHAPE)
    quick, late = (revised(1.0, replace(plan, spent=spent), USUAL, SPEEDS, SHAPE) for spent in (600.0, 3000.0))
    assert quick.student_steps == int((0.9 * 3600 - 600) / (2 * 0.2))
    assert late.student_steps == int((0.9 * 3600 - 3000) / (2 * 0.2))
    assert quick.revised
    assert revised(1.0, replace(plan, spent=9999.0), USUAL, SPEEDS, SHAPE).student_steps == 10
    assert Plan.from_json(quick.to_json()) == quick


def test_a_plan_is_read_as_it_was_written() -> None:
    assert Plan.from_json(USUAL.to_json()) == USUAL
    with pytest.raises(IllegalInput):
        Plan.from_json({"round_steps": 1})
