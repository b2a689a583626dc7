"""What a list says of every method."""

import pytest

from formwright.recipes import COMPRESSIONS, RECIPES, Summary

ALL: dict[str, Summary] = {name: RECIPES.get(name).summary for name in RECIPES.names()}
ALL |= {name: COMPRESSIONS.get(name) for name in COMPRESSIONS.names()}


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_left_unsaid(name: str) -> None:
    one = ALL[name]
    assert one.about
    assert one.paper
    assert one.needs
    assert one.takes
    assert one.job in ("search", "compress")
