"""Operations measured one by one: sums of them are what whole chains take."""

from itertools import pairwise

import pytest
from tests.supernet.lessons import MENU

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.cost import params
from formwright.nn.latency_table import quick
from formwright.nn.operation_times import measured_operations, measurements
from formwright.space.zoo.chains import REAL, candidate, chain_card, chains

BARE, JOINT = 0.1, 0.03


def pretended(card: Card) -> float:
    """Take a time that is exactly the sum of parts: so must the table come to it."""
    assert card.encoder is not None
    layers = [layer for layer in card.encoder.layers if isinstance(layer, Block)]
    widths = [card.encoder.embedding.width, *(layer.width for layer in layers)]
    joints = sum(below != above for below, above in pairwise(widths))
    return BARE + JOINT * joints + sum(_own(layer) for layer in layers)


def _own(layer: Block) -> float:
    return 0.0 if layer.empty else 0.001 * layer.width * (1 + len(layer.feed_forward))


def test_sums_are_what_whole_chains_take() -> None:
    told: list[int] = []
    times = measured_operations(MENU, measured=pretended, after=told.append)
    assert told == list(range(measurements(MENU)))
    found = list(chains(MENU))
    for first, second in zip(found[::9], found[4::9], strict=False):
        card = chain_card(MENU, first.width, [first, second])
        added = times.embeddings.get(first.width, BARE) + times.of_joint(first.width, second.width)
        added += times.of_chain(first.width, first.operations) + times.of_chain(second.width, second.operations)
        assert added == pytest.approx(pretended(card))


def test_every_operation_width_and_joint_has_a_time() -> None:
    times = measured_operations(MENU, measured=lambda card: 1e-6 * params(card))
    assert set(times.operations) == {(name, width) for name in REAL for width in MENU.widths}
    assert set(times.embeddings) == set(MENU.embeddings)
    assert len(times.joints) == len(MENU.sizes) * (len(MENU.sizes) - 1) // 2
    assert min(times.operations.values()) > 0


def test_noise_never_makes_a_time_negative() -> None:
    times = measured_operations(MENU, measured=lambda card: 1.0 / params(card))
    assert set(times.operations.values()) == set(times.joints.values()) == {0.0}


def test_a_real_model_can_be_measured() -> None:
    card = chain_card(MENU, 4, [next(chains(MENU))])
    assert quick(8)(card) > 0
    assert candidate("identity", 4).empty
