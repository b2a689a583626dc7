"""Times of operations, added up."""

import pytest

from formwright.core.errors import IllegalInput
from formwright.cost.operation_times import OperationTimes

TIMES = OperationTimes({4: 0.5, 8: 1.0}, {("attention", 8): 2.0, ("feed-forward", 8): 3.0}, {(4, 8): 0.25})


def test_a_chain_takes_what_its_operations_take() -> None:
    assert TIMES.of_chain(8, ("attention", "feed-forward", "attention")) == 7.0


def test_a_joint_takes_as_long_either_way_and_no_joint_nothing() -> None:
    assert TIMES.of_joint(4, 8) == TIMES.of_joint(8, 4) == 0.25
    assert TIMES.of_joint(8, 8) == 0.0


def test_times_are_read_as_they_were_written() -> None:
    assert OperationTimes.from_json(TIMES.to_json()) == TIMES


@pytest.mark.parametrize(
    "data",
    [{}, [], {**TIMES.to_json(), "joints": [[1, 2]]}, {**TIMES.to_json(), "embeddings": [[4, float("nan")]]}],
)
def test_what_is_no_table_is_refused(data: object) -> None:
    with pytest.raises(IllegalInput):
        OperationTimes.from_json(data)
