import pytest

from formwright.search.rungs import rungs_of


@pytest.mark.parametrize(
    ("options", "rungs"),
    [((3, 27, 3), (3, 9, 27)), ((3, 30, 3), (3, 9, 27, 30)), ((5, 5, 3), (5,)), ((1, 100, 100), (1, 100))],
)
def test_rungs_grow_by_a_factor_and_end_with_the_full_length(
    options: tuple[int, int, int], rungs: tuple[int, ...]
) -> None:
    assert rungs_of(*options) == rungs
