"""The benchmark of orders: its sub-networks, and the figures of units."""

import numpy as np
import pytest
from benchmarks.order import ARMS, SETTINGS, SHARES, fewer_layers, figures, nearest, score, uniform_widths

from formwright.arch.card import Card
from formwright.cost import macs


def cost(card: Card) -> float:
    return float(macs(card, 24))


@pytest.mark.parametrize("name", SETTINGS)
def test_controls_have_sub_networks_near_every_share(name: str) -> None:
    card = SETTINGS[name].card
    for cards, off in ((uniform_widths(card), 0.05), (fewer_layers(card), 0.13)):
        shares = [cost(one) / cost(card) for one in nearest(cards, cost, cost(card))]
        assert np.allclose(shares, SHARES, atol=off)
    assert card in fewer_layers(card)


def test_an_arm_that_answers_more_has_more_hypervolume_than_none() -> None:
    rng = np.random.default_rng(0)

    def unit(hits: float) -> dict[str, object]:
        rows = [(rng.random((40, 1)) < hits).astype(float).tolist() for _ in SHARES]
        return {"shares": list(SHARES), "before": rows, "after": rows}

    units = {(arm, seed): unit(0.9 if arm == "l1" else 0.5) for arm in ARMS for seed in range(2)}
    found = figures("fashion-mnist", units, 2, 0.1, resamples=50)
    ahead, low, high = found["l1"]["after"]["ahead of none"]
    assert low <= ahead <= high
    assert low > 0
    assert found["none"]["before"]["ahead of none"] == [0.0, 0.0, 0.0]


def test_the_score_of_a_translator_is_minus_its_loss_for_a_token() -> None:
    table = np.array([[2.0, 3.0], [4.0, 1.0]])  # mean loss of a row, and its tokens
    assert score("multi30k", table) == pytest.approx(-2.5)
