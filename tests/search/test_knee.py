import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.core.errors import IllegalInput
from formwright.search.knee import knee


def test_the_knee_is_where_further_dimensions_stop_to_pay() -> None:
    assert knee({2: 0.30, 4: 0.20, 8: 0.12, 16: 0.05, 24: 0.049, 32: 0.048}) == 16
    assert knee({32: 0.048, 2: 0.30, 16: 0.25, 8: 0.26, 4: 0.05, 24: 0.049}) == 4


@given(st.dictionaries(st.integers(1, 64), st.floats(0, 1), min_size=1), st.floats(0.1, 100))
def test_the_knee_is_one_of_the_numbers_and_knows_no_unit(errors: dict[int, float], unit: float) -> None:
    rounded = {number: round(error, 3) for number, error in errors.items()}
    found = knee(rounded)
    assert found in rounded
    line = {number: _line(rounded, number) for number in rounded}
    scaled = knee({number: unit * error for number, error in rounded.items()})
    assert line[scaled] - rounded[scaled] == pytest.approx(line[found] - rounded[found], abs=1e-9)


def _line(errors: dict[int, float], number: int) -> float:
    first, last = min(errors), max(errors)
    share = (number - first) / (last - first) if last > first else 0.0
    return errors[first] + share * (errors[last] - errors[first])


def test_where_nothing_bends_the_smallest_number_of_the_least_error_is_taken() -> None:
    assert knee({2: 0.4, 4: 0.3, 6: 0.2}) == 6
    assert knee({2: 0.4, 4: 0.4, 6: 0.4}) == 2
    assert knee({2: 0.4, 3: 0.39, 4: 0.2}) == 4
    assert knee({7: 0.1}) == 7


def test_no_curve_has_no_knee() -> None:
    with pytest.raises(IllegalInput, match="has no knee"):
        knee({})
