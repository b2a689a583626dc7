from typing import Any

import numpy as np
import pytest

from formwright.core.errors import Fault, IllegalInput
from formwright.space import Choice


def test_a_choice_counts_lists_and_contains_its_options() -> None:
    choice = Choice((2, "four", None, (1, 2)))
    assert choice.count() == 4
    assert list(choice.enumerate()) == [2, "four", None, (1, 2)]
    assert choice.contains((1, 2))
    assert not choice.contains([1, 2])
    assert not choice.contains(3)


def test_numbers_are_not_truth_values() -> None:
    assert not Choice((0, 1)).contains(True)
    assert not Choice(((0, 1),)).contains((False, 1))
    assert Choice((False, True)).contains(True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "at least one option"),
        ((2, 2), "distinct"),
        ((1, True), "distinct"),
        (([1],), "neither a JSON scalar"),
        ((((1,),),), "neither a JSON scalar"),
        ((float("nan"),), "neither a JSON scalar"),
    ],
)
def test_options_that_json_cannot_tell_apart_are_refused(options: Any, message: str) -> None:
    with pytest.raises(IllegalInput, match=message):
        Choice(options)


def test_encoding_is_one_hot() -> None:
    assert Choice((2, 4, 8)).encode(4).tolist() == [0.0, 1.0, 0.0]
    assert Choice((2, 4, 8)).decode(np.array([0.1, -2.0, 0.3])) == 8


def test_json_lists_are_tuples_and_give_the_option_itself() -> None:
    faults: list[Fault] = []
    assert Choice(((1, 2), 3)).from_json([1, 2], (), faults) == (1, 2)
    assert type(Choice((1.0,)).from_json(1, (), faults)) is float
    assert faults == []
    Choice((2, (1, 2))).from_json(True, ("heads",), faults)
    assert faults == [Fault("heads", "is True; allowed: 2, [1, 2]")]
