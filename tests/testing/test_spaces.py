import pytest

from formwright.space import Space
from formwright.testing.spaces import large, small, tiny, twins


@pytest.mark.parametrize(("space", "designs", "cards"), [(tiny(), 12, 12), (small(), 342, 342), (twins(), 24, 12)])
def test_sizes_are_those_promised(space: Space, designs: int, cards: int) -> None:
    listed = list(space.enumerate())
    assert len(listed) == space.count() == designs
    assert len({space.card(design).digest for design in listed}) == cards


def test_the_large_space_is_too_large_to_list() -> None:
    assert large().count() > 10**12
