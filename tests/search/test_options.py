import pytest

from formwright.core.errors import IllegalInput
from formwright.search.options import among, at_least, check, not_negative, share, yes_or_no


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


@pytest.mark.parametrize("value", [0, 0.5, 7])
def test_numbers_from_0_pass(value: float) -> None:
    assert not_negative(k1=value) == []


@pytest.mark.parametrize("value", [-0.1, 1_000_000, 1e300, float("inf"), float("nan"), True, "1", None])
def test_what_is_no_number_from_0_has_a_fault(value: object) -> None:
    assert not_negative(k1=value) == [f"k1 is {value!r}; it must be a number, at least 0 and below 1,000,000."]


def test_a_number_of_many_digits_is_refused_briefly() -> None:
    for faults in (not_negative(k1=10**400), share(k1=10**400)):
        assert len(faults) == 1
        assert len(faults[0]) < 120


def test_yes_or_no_and_among() -> None:
    assert yes_or_no(first=True, second=False) == []
    assert yes_or_no(first=1, second="no") == [
        "first is 1; it must be True or False.",
        "second is 'no'; it must be True or False.",
    ]
    assert among("colour", "red", ("red", "blue")) == []
    assert among("colour", "green", ("red", "blue")) == ["colour is 'green'; it must be 'red' or 'blue'."]
    check([])
    with pytest.raises(IllegalInput, match=r"^One\. Two\.$"):
        check(["One.", "Two."])
