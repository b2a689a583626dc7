"""The parts of an encoder are told apart by measuring whole encoders, whatever noise there is."""

from collections import Counter

import numpy as np
import pytest

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention, Identity
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.nn.latency_table import measured_table, quick
from formwright.supernet.automatic import sub_network

HEADS, CHANNELS, LAYERS, WIDTH = 4, 64, 3, 16
CARD = Card(encoder=Stack(TokenEmbedding(50, WIDTH, length=16), (Block(WIDTH, Attention(HEADS, 4), (CHANNELS,)),) * 3))
REST = 2.0


def true_time(card: Card) -> float:
    """Give the time of a machine whose parts take what their width says: fewer hidden numbers, less time."""
    assert card.encoder is not None
    share, total = card.output_width / WIDTH, REST
    for layer in card.encoder.layers:
        assert isinstance(layer, Block)
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

    table = measured_table(CARD, measured=busy_at_first)
    assert table(CARD) == pytest.approx(true_time(CARD), abs=1e-9)
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
