"""The table of proxies."""

import pytest
from tests.evaluate.toy import card

from formwright.evaluate.proxies import PROXIES


@pytest.mark.parametrize("name", PROXIES.names())
def test_every_proxy_scores_a_card_by_a_seed(name: str) -> None:
    assert isinstance(PROXIES.get(name)(card(32), 1), float)


def test_the_first_two_of_the_family_are_there() -> None:
    assert {"params", "synflow"} <= set(PROXIES.names())
