from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.arch.random_cards import random_card
from tests.arch.whole_space import seconds_for_all_pairs

from formwright.arch.alignment import Alignment
from formwright.arch.card import Card
from formwright.arch.edit_distance import EditDistance
from formwright.arch.layers import Block, Layer, Stack, TokenEmbedding
from formwright.arch.ops import Attention, Identity
from formwright.core.rng import derive
from formwright.space.zoo import load_space

# ranks: input 0, output 1, add & norm 2, feed-forward 64 3, feed-forward 128 4, head 5
NARROW = Block(32, Attention(2, 16), (64,))
WIDE = Block(32, Attention(2, 16), (128,))
MANY = Block(32, Attention(4, 8), (64,))
EXCHANGE = 1 + 4 * 0.1  # of NARROW and WIDE: one rank, and the edges to and from the feed-forward layer
WHOLE = 2 * 5 + 2 * 2 + 4 + 8 * 0.1  # of WIDE: its blocks and edges


def model(*layers: Layer) -> Card:
    return Card(Stack(TokenEmbedding(9, layers[0].width), layers))


def distance(a: Card, b: Card) -> float:
    return float(Alignment.of([model(NARROW, WIDE)]).between([a], [b])[0, 0])


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (model(NARROW), model(WIDE), EXCHANGE),
        (model(NARROW), model(MANY), 2 * 5 + 4 * 0.1),
        (model(NARROW), model(NARROW, WIDE), WHOLE),
        (model(NARROW), model(WIDE, NARROW, WIDE), 2 * WHOLE),
        (model(NARROW, WIDE), model(WIDE, NARROW), 2 * EXCHANGE),
        (model(NARROW, Block(32, Identity()), WIDE), model(NARROW, WIDE), 0.0),
        (model(Block(32, Attention(2, 16), (64, 128))), model(Block(32, Attention(2, 16), (128, 64))), 6 * 0.1),
    ],
)
def test_distances_worked_out_by_hand(a: Card, b: Card, expected: float) -> None:
    assert distance(a, b) == pytest.approx(expected, rel=1e-6)


def test_removing_and_adding_may_be_cheaper_than_turning_each_layer() -> None:
    heavy, light = Block(32, Attention(32, 1), (64,)), Block(32, Attention(1, 32))
    shifted = distance(model(light, heavy, heavy), model(heavy, heavy, light))
    assert shifted == pytest.approx(2 * (5 + 2 + 3 * 0.1))


def test_encoders_are_not_aligned_with_decoders() -> None:
    table = TokenEmbedding(9, 32)
    encoder, decoder = Card(Stack(table, (WIDE,))), Card(decoder=Stack(table, (WIDE,), causal=True))
    assert distance(encoder, decoder) == pytest.approx(2 * WHOLE)


def by_recursion(a: tuple[Layer, ...], b: tuple[Layer, ...]) -> float:
    """Align two lists of layers in the plainest way, pricing layers as designs of one layer."""
    layers = sorted({*a, *b}, key=repr)
    alone = [model(layer) for layer in layers]
    whole = model(*a, *b)
    turning = Alignment.of([whole]).between(alone, alone)
    # a list of no layer cannot be a design, but n + 1 equal layers differ from one by n whole ones
    removing = {layer: Alignment.of([whole]).between([model(layer)], [model(layer, layer)])[0, 0] for layer in layers}

    @cache
    def rest(i: int, j: int) -> float:
        if i == len(a) or j == len(b):
            return float(sum(removing[layer] for layer in (*a[i:], *b[j:])))
        turned = turning[layers.index(a[i]), layers.index(b[j])] + rest(i + 1, j + 1)
        return float(min(turned, removing[a[i]] + rest(i + 1, j), removing[b[j]] + rest(i, j + 1)))

    return rest(0, 0)


@given(st.integers(0, 10**9))
def test_it_agrees_with_a_plain_recursion(seed: int) -> None:
    space, rng = load_space("flexibert-s1star"), derive(seed, "recursion")
    a, b = (space.card(space.sample(rng, "gene")).stacks[0].layers for _ in range(2))
    found = Alignment.of([model(*a, *b)]).between([model(*a)], [model(*b)])[0, 0]
    assert found == pytest.approx(by_recursion(a, b), rel=1e-5)


@given(st.integers(0, 10**9))
def test_it_is_never_below_the_edit_distance(seed: int) -> None:
    rng = derive(seed, "bound")
    cards = [random_card(rng) for _ in range(6)]
    assert (Alignment.of(cards).between(cards, cards) >= EditDistance.of(cards).between(cards, cards)).all()


def test_swapped_stacks_are_told_apart_throughout_the_space() -> None:
    space = load_space("flexibert")
    cards = [space.card(design) for design in space.enumerate()]
    listed = {card.stacks[0].layers: card for card in cards if len(card.stacks[0].layers) == 4}
    mixed = [layers for layers in listed if layers[0] != layers[2]]
    measured = [listed[layers] for layers in mixed] + [listed[layers[2:] + layers[:2]] for layers in mixed]
    number = np.arange(len(mixed))
    assert len(mixed) == 96 * 95
    assert Alignment.of(cards).pairs(measured, number, number + len(mixed)).min() > 1
    assert not EditDistance.of(cards).pairs(measured, number, number + len(mixed)).any()


def test_only_equal_layers_are_at_distance_0() -> None:
    stacks = [stack for depth in (1, 3) for stack in product((64, 128), repeat=depth)]
    layers = [Block(32, Attention(heads, 32 // heads), stack) for heads in (2, 4) for stack in stacks]
    cards = [model(layer) for layer in layers]
    matrix = Alignment.of(cards).between(cards, cards)
    assert len(cards) == 20
    assert (matrix + np.eye(len(cards)) > 0).all()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.long
def test_all_pairs_of_the_whole_space_take_less_than_a_minute() -> None:
    assert seconds_for_all_pairs(Alignment) < 60
