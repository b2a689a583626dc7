"""The table of proxies."""

import pytest
from tests.evaluate.toy import card

from formwright.cost import params
from formwright.evaluate.proxies import PROXIES, parameter_count
from formwright.space.zoo import load_card


@pytest.mark.parametrize("name", PROXIES.names())
def test_every_proxy_scores_a_card_by_a_seed(name: str) -> None:
    assert isinstance(PROXIES.get(name)(card(32), 1), float)


def test_the_first_two_of_the_family_and_the_count_of_parameters() -> None:
    assert {"params", "synflow"} <= set(PROXIES.names())
    assert parameter_count(load_card("bert-tiny")) == 4_385_920
    assert parameter_count(card(32), 5) == parameter_count(card(32)) == params(card(32))
