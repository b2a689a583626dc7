"""The numbers of EFTNAS, and the promises that its docstring makes."""

import pytest

from formwright.compress.plan import ORDERS, SCORED
from formwright.recipes import eftnas
from formwright.recipes.eftnas import EFTNAS
from formwright.search import SEARCHERS
from formwright.supernet.automatic import LEAST, MULTIPLE
from formwright.train.distil import Mix


def test_the_defaults_can_be_worked_with() -> None:
    assert EFTNAS.order in ORDERS
    assert EFTNAS.searcher in SEARCHERS.names()
    assert Mix(labels=EFTNAS.labels, scores=1 - EFTNAS.labels, temperature=EFTNAS.temperature).scores > EFTNAS.labels
    assert EFTNAS.configurations >= 2
    assert EFTNAS.between >= 1


@pytest.mark.parametrize(
    "promise",
    [f"multiples of {MULTIPLE}", f"below {LEAST:.0%}".replace("%", " %"), f"{SCORED} batches", "--order movement"],
)
def test_what_the_docstring_says_is_what_is_done(promise: str) -> None:
    assert promise in " ".join(str(eftnas.__doc__).split())
