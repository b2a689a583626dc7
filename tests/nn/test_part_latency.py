"""The parts of an encoder are told apart by measuring whole encoders, whatever noise there is."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from tests.supernet.lessons import MENU

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention, Identity
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.cost import params
from formwright.nn.part_latency import measured_operations, measured_table, measurements, quick
from formwright.space.zoo.chains import REAL, candidate, chain_card, chains
from formwright.supernet.automatic import sub_network

HEADS, CHANNELS, LAYERS, WIDTH = 4, 64, 3, 16
CARD = Card(encoder=Stack(TokenEmbedding(50, WIDTH, length=16), (Block(WIDTH, Attention(HEADS, 4), (CHANNELS,)),) * 3))
REST = 2.0


def true_time(card: Card) -> float:
    """Give the time of a machine whose parts take what their width says: fewer hidden numbers, less time."""
    share, total = card.output_width / WIDTH, REST
    for layer in card.encoder.layers:
        heads = layer.mixer.heads if isinstance(layer.mixer, Attention) else 0
        total += share * (0.1 * bool(heads) + 0.5 * heads + 0.01 * sum(layer.feed_forward))
    return total


@pytest.mark.parametrize(
    "widths", [((4, 64),) * 3, ((0, 0),) * 3, ((1, 32), (3, 0), (0, 64)), ((2, 43), (4, 11), (1, 1))]
)
def test_on_a_machine_without_noise_the_table_tells_the_time(widths: tuple[tuple[int, int], ...]) -> None:
    table = measured_table(CARD, measured=true_time)
    assert table(sub_network(CARD, widths)) == pytest.approx(true_time(sub_network(CARD, widths)), abs=1e-9)


def test_hidden_sizes_are_measured_beside_the_encoders_own() -> None:
    table = measured_table(CARD, (8, 12), measured=true_time)
    assert sorted(table.by_hidden) == [8, 12, 16]
    narrow = sub_network(CARD, ((1, 32), (4, 64), (0, 16)), 8)
    assert table(narrow) == pytest.approx(true_time(narrow), abs=1e-9)
    assert table(CARD) == pytest.approx(true_time(CARD), abs=1e-9)
    assert sorted(measured_table(CARD, (16,), measured=true_time).by_hidden) == [16]


def test_noise_never_makes_a_wider_part_quicker() -> None:
    rng = derive(0, "noise")
    table = measured_table(CARD, measured=lambda card: true_time(card) * float(rng.uniform(0.8, 1.5)))
    (times,) = table.by_hidden.values()
    for part in (times.heads, times.channels):
        values = [part[width] for width in sorted(part)]
        assert values[0] == 0.0
        assert values == sorted(values)
    assert times.rest >= 0


def test_little_noise_changes_little() -> None:
    rng = derive(0, "noise")
    table = measured_table(CARD, measured=lambda card: true_time(card) * float(rng.uniform(1.0, 1.02)))
    for widths in (((4, 64),) * 3, ((1, 16), (2, 32), (0, 0))):
        card = sub_network(CARD, widths)
        assert table(card) == pytest.approx(true_time(card), rel=0.05)


def test_a_busy_moment_falls_on_no_part_alone() -> None:
    """Slow runs are forgotten where quick ones follow: of each model the quickest of three rounds counts."""
    seen: Counter[str] = Counter()

    def busy_at_first(card: Card) -> float:
        seen[card.digest] += 1
        return true_time(card) + (100.0 if seen[card.digest] == 1 else 0.0)

    assert measured_table(CARD, measured=busy_at_first)(CARD) == pytest.approx(true_time(CARD), abs=1e-9)
    assert set(seen.values()) == {3}


def test_few_models_are_measured_and_each_is_told_of() -> None:
    measured: list[str] = []
    told: list[None] = []

    def note(card: Card) -> float:
        measured.append(card.digest)
        return true_time(card)

    measured_table(CARD, measured=note, after=lambda: told.append(None))
    assert len(told) == len(measured) == 3 * len(set(measured))
    assert len(set(measured)) == 5 + 7 - 1  # 0 to 4 heads, 7 widths, and the full model once


def _layer(heads: int, channels: int) -> Block:
    return Block(WIDTH, Attention(heads, 4) if heads else Identity(), (channels,) if channels else ())


@pytest.mark.parametrize(
    "layers", [((4, 64), (2, 64)), ((4, 64), (4, 32)), ((0, 64), (0, 64)), ((4, 0), (4, 0)), ((4, 64), (0, 64))]
)
def test_layers_that_are_not_alike_are_refused(layers: tuple[tuple[int, int], ...]) -> None:
    card = Card(encoder=Stack(TokenEmbedding(50, WIDTH, length=16), tuple(_layer(*widths) for widths in layers)))
    with pytest.raises(
        IllegalInput, match=r"all layers of a model have as many heads and channels.*Give targets in MACs"
    ):
        measured_table(card, measured=true_time)


def test_quick_measures_real_models() -> None:
    measure = quick(8)
    found = [measure(CARD) for _ in range(2)]
    assert min(found) > 0
    assert np.isfinite(found).all()


BARE, JOINT = 0.1, 0.03


def pretended(card: Card) -> float:
    """Take a time that is exactly the sum of parts: so must the table come to it."""
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


def test_every_operation_width_and_joint_has_a_time_from_0() -> None:
    times = measured_operations(MENU, measured=lambda card: 1e-6 * params(card))
    assert set(times.operations) == {(name, width) for name in REAL for width in MENU.widths}
    assert set(times.embeddings) == set(MENU.embeddings)
    assert len(times.joints) == len(MENU.sizes) * (len(MENU.sizes) - 1) // 2
    assert min(times.operations.values()) > 0
    times = measured_operations(MENU, measured=lambda card: 1.0 / params(card))
    assert set(times.operations.values()) == set(times.joints.values()) == {0.0}


def test_a_real_model_can_be_measured() -> None:
    assert quick(8)(chain_card(MENU, 4, [next(chains(MENU))])) > 0
    assert candidate("identity", 4).empty
