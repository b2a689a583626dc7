import pytest

from formwright.core.errors import IllegalInput
from formwright.search.options import at_least, check, share


def test_whole_numbers_from_the_least_pass() -> None:
    assert at_least(2, population=2, tournament=50) == []


@pytest.mark.parametrize("value", [1, True, 2.0, "3", None])
def test_everything_else_has_a_fault(value: object) -> None:
    assert at_least(2, population=value) == [f"population is {value!r}; it must be a whole number, at least 2."]


@pytest.mark.parametrize("value", [0, 0.5, 1])
def test_shares_pass(value: float) -> None:
    assert share(crossover=value) == []


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), True, "0.5", None])
def test_what_is_no_share_has_a_fault(value: object) -> None:
    assert share(crossover=value) == [f"crossover is {value!r}; it must be a number from 0 to 1."]


def test_all_faults_are_told() -> None:
    check([])
    with pytest.raises(IllegalInput, match=r"^One\. Two\.$"):
        check(["One.", "Two."])
