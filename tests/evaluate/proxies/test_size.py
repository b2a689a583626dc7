from tests.evaluate.toy import card

from formwright.cost import params
from formwright.evaluate.proxies.size import parameter_count
from formwright.space.zoo import load_card


def test_it_counts_parameters_whatever_the_seed() -> None:
    assert parameter_count(load_card("bert-tiny")) == 4_385_920
    assert parameter_count(card(32), 5) == parameter_count(card(32)) == params(card(32))
