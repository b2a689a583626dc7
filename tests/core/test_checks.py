from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from formwright.core.checks import finite, folder_name, natural, put, stored_fields
from formwright.core.errors import IllegalInput


@dataclass(frozen=True)
class Pair:
    left: int
    right: int = 0


@pytest.mark.parametrize(
    ("check", "kind", "values"),
    [(finite, float, [0, -2, 1.5, np.float32(1.5), np.int64(3)]), (natural, int, [0, 7, np.int64(7)])],
)
def test_numbers_are_returned_as_plain_ones(check: Any, kind: type, values: list[Any]) -> None:
    assert [check("it", value) for value in values] == values
    assert {type(check("it", value)) for value in values} == {kind}


@pytest.mark.parametrize(
    ("check", "values", "needed"),
    [
        (finite, [float("nan"), float("inf"), np.float64("nan"), True, "1", None], "a finite number"),
        (natural, [-1, 2**63, 1.0, True, "1", None], "a whole number"),
    ],
)
def test_other_values_are_refused_by_name(check: Any, values: list[Any], needed: str) -> None:
    for value in values:
        with pytest.raises(IllegalInput, match=rf"the loss is .*{needed}"):
            check("the loss", value)


def test_put_normalises_a_frozen_value() -> None:
    pair = Pair(1)
    put(pair, left=2, right=3)
    assert pair == Pair(2, 3)


def test_stored_fields_wants_exactly_the_fields() -> None:
    assert stored_fields(Pair, {"left": 1, "right": 2}) == {"left": 1, "right": 2}
    assert stored_fields(Pair, {"left": 1}, left_out=("right",)) == {"left": 1}


@pytest.mark.parametrize("data", [{"left": 1}, {"left": 1, "right": 2, "up": 3}, [], None])
def test_stored_fields_refuses_anything_else(data: object) -> None:
    with pytest.raises(IllegalInput, match="a stored Pair must have the fields"):
        stored_fields(Pair, data)


@pytest.mark.parametrize("name", ["trial-3", "my study", "a..b", "é" * 100])
def test_a_name_of_a_folder_is_returned(name: str) -> None:
    assert folder_name("a study", name) == name


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "a\\b", "/a", "a\nb", "a\x1bb", "é" * 101, None, 5])
def test_a_name_that_leads_elsewhere_is_refused(name: object) -> None:
    with pytest.raises(IllegalInput, match="a study"):
        folder_name("a study", name)
