"""When a score counts as repeated."""

from dataclasses import replace

import pytest

from formwright.evaluate.repeat_score import RepeatedScore
from formwright.tasks.bootstrap import Evidence


@pytest.mark.parametrize(
    ("recorded", "repeats"),
    [
        ({"accuracy": 0.75, "f1": 0.5}, True),
        ({"accuracy": 0.75 + 1e-9}, True),
        ({"accuracy": 0.7501, "f1": 0.5}, False),
        ({"accuracy": 0.75, "f1": 0.4999}, False),
        ({"accuracy": 0.75, "matthews": 0.0}, False),
        (None, None),
    ],
)
def test_scores_repeat_where_all_come_out_up_to_the_last_digits(
    recorded: dict[str, float] | None, repeats: bool | None
) -> None:
    metrics = {"accuracy": 0.75, "f1": 0.5}
    found = RepeatedScore("mine", "validation", 8, "accuracy", 16, metrics, Evidence(8, {}), recorded)
    assert found.repeats is repeats


def test_other_runtimes_may_differ_a_little() -> None:
    found = RepeatedScore("t", "validation", 8, "pearson", 16, {"pearson": 0.50001}, Evidence(8, {}), {"pearson": 0.5})
    assert found.repeats is False
    assert replace(found, tolerance=1e-4).repeats is True
    assert replace(found, tolerance=1e-4, recorded={"pearson": 0.501}).repeats is False
