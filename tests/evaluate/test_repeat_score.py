"""When a score counts as repeated."""

import pytest

from formwright.evaluate.repeat_score import RepeatedScore
from formwright.tasks.evidence import Evidence


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
