import numpy as np
import pytest

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.core.rng import derive
from formwright.search.path_encoding import path_codes, path_encoding
from formwright.space.zoo import load_space
from formwright.testing.spaces import large, small, tiny


def encoder(number: int) -> tuple[Block, ...]:
    """Return the layers of one of the two-layer designs of a small space."""
    space = small()
    deep = (space.card(design) for design in space.enumerate())
    cards = [card for card in deep if card.encoder and len(card.encoder.layers) == 2]
    stack = cards[number].encoder
    assert stack is not None
    return stack.layers  # type: ignore[return-value]


def card_of(*layers: Block) -> Card:
    stack = next(iter(map(small().card, small().enumerate()))).encoder
    assert stack is not None
    return Card(encoder=stack.__class__(stack.embedding, layers))


def test_designs_of_a_space_have_different_points() -> None:
    for space in (tiny(), small()):
        designs = list(space.enumerate())
        points = path_encoding(space)(designs, [space.card(design) for design in designs])
        assert len(np.unique(points, axis=0)) == len(designs)
        assert set(points.ravel()) == {0.0, 1.0}


def test_each_residual_part_has_two_paths() -> None:
    below, above = encoder(5)
    # the input, then two parts of each layer, with a way around and one through each, then the output
    assert len(path_codes(card_of(below, above))) == 1 + 4 * 2 + 1
    assert len(path_codes(card_of(below))) == 1 + 2 * 2 + 1


def test_paths_are_shared_by_place() -> None:
    layers = encoder(100)
    first, second = layers
    assert first != second
    one, other = set(path_codes(card_of(first, first))), set(path_codes(card_of(first, second)))
    lone = set(path_codes(card_of(first)))
    assert len(lone - one) == 1  # all but the output, which is elsewhere
    assert 4 < len(one & other) < len(one)
    assert path_codes(card_of(first, second)) != path_codes(card_of(second, first))


def test_columns_are_few_and_the_commonest() -> None:
    space = large()
    designs = [space.sample(derive(seed), "gene") for seed in range(50)]
    cards = [space.card(design) for design in designs]
    all_columns, few = path_encoding(space)(designs, cards), path_encoding(space, 10)(designs, cards)
    assert few.shape == (50, 10)
    np.testing.assert_array_equal(few, all_columns[:, :10])
    assert few.mean() > all_columns.mean()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["autobert-zero", "evolved-transformer", "hat"])
def test_op_graphs_and_decoders_have_paths_too(name: str) -> None:
    space = load_space(name)
    cards = [space.card(space.sample(derive(seed), "gene")) for seed in range(5)]
    codes = [path_codes(card) for card in cards]
    assert all(len(found) > 2 for found in codes)
    assert len(set(codes)) == 5


def test_an_empty_list_has_no_points() -> None:
    assert path_encoding(tiny())([], []).shape[0] == 0
