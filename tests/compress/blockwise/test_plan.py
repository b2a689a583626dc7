"""How a budget of time becomes steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.compress.blockwise.plan import Plan, Shape, Speeds, within
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


def test_too_few_hours_are_refused_with_the_least() -> None:
    with pytest.raises(IllegalInput, match=r"0\.001 hours are too few here: the least takes about 0\.029;") as refused:
        within(0.001, USUAL, SPEEDS, SHAPE)
    least = float(str(refused.value).split("about ")[1].split(";")[0])
    assert within(1.05 * least, USUAL, SPEEDS, SHAPE).round_steps >= 10


def test_a_plan_is_read_as_it_was_written() -> None:
    assert Plan.from_json(USUAL.to_json()) == USUAL
    with pytest.raises(IllegalInput):
        Plan.from_json({"round_steps": 1})
