from typing import Any

import pytest
from numpy.random import default_rng

from formwright.core.errors import IllegalInput
from formwright.space import Case, Expressions, Fields, Record, Repeat, Space, lists_of, narrowed
from formwright.space.narrow import ListOf
from formwright.space.zoo import load_space

FINE = load_space("flexibert-nano-s1star")
PAIRS = {"layers": 2, "layers.feed_forward": 3}
EQUAL_STACKS = {"layers.feed_forward": 3}


def layer(operation: str, option: Any, heads: int, hidden: int, stack: tuple[int, ...]) -> Fields:
    return Fields.of(operation=Case(operation, option), heads=heads, hidden=hidden, feed_forward=stack)


FIRST = layer("sa", "sdp", 2, 32, (64,))
SECOND = layer("dsc", 5, 2, 64, (64, 64, 64))
THIRD = layer("sa", "wma", 4, 32, (128, 128, 128))


def test_lists_have_names_depths_and_sizes() -> None:
    assert list(lists_of(FINE.root)) == [ListOf("layers", 0, 4), ListOf("layers.feed_forward", 1, 3)]
    assert list(lists_of(load_space("flexibert-nano").root)) == [ListOf("layers", 0, 2)]


@pytest.mark.parametrize(("ties", "coarser"), [(PAIRS, "flexibert-nano"), (EQUAL_STACKS, "flexibert-nano-s1")])
def test_tied_spaces_have_the_cards_of_coarser_spaces(ties: dict[str, int], coarser: str) -> None:
    space, other = narrowed(FINE, "coarse", ties), load_space(coarser)
    assert space.count() == other.count()
    rng = default_rng(0)
    for _ in range(30):
        design = space.sample(rng)
        assert FINE.contains(design)
        layers = space.card(design).stacks[0].layers
        if ties is PAIRS:
            assert layers[::2] == layers[1::2]
        assert all(len(set(block.feed_forward)) == 1 for block in layers)  # type: ignore[union-attr]


@pytest.mark.long
@pytest.mark.slow
def test_all_cards_of_the_coarser_space_are_there() -> None:
    cards = {FINE.card(design).digest for design in narrowed(FINE, "coarse", PAIRS).enumerate()}
    other = load_space("flexibert-nano")
    assert cards == {other.card(design).digest for design in other.enumerate()}


def test_without_ties_and_designs_nothing_is_lost() -> None:
    assert narrowed(FINE, "same", {}).count() == FINE.count()


def test_the_space_is_the_product_of_the_choices_at_the_same_depth() -> None:
    parents = [Fields.of(layers=(FIRST, FIRST, SECOND, SECOND)), Fields.of(layers=(THIRD, THIRD))]
    space = narrowed(FINE, "children", EQUAL_STACKS, parents)
    # a first or second layer: sdp or wma, 2 or 4 heads, 32 wide, 1 or 3 stacked layers of 64 or of 128
    early = 2 * 2 * 1 * (2 * 2)
    assert space.count() == early**2 + early**2  # third and fourth layers can only be those of the only deep parent
    assert all(map(space.contains, parents))
    mixed = layer("sa", "wma", 2, 32, (64, 64, 64))
    assert space.contains(Fields.of(layers=(mixed, FIRST)))
    assert not space.contains(Fields.of(layers=(SECOND, FIRST)))


def test_lists_inside_a_list_take_what_they_have_at_any_place() -> None:
    parents = [Fields.of(layers=(FIRST, FIRST)), Fields.of(layers=(THIRD, THIRD))]
    space = narrowed(FINE, "children", {}, parents)
    stack = layer("sa", "sdp", 2, 32, (128, 64, 128))
    assert space.contains(Fields.of(layers=(stack, FIRST)))
    assert space.count() == (2 * 2 * 1 * (2 + 8)) ** 2


def test_constraints_and_cards_stay() -> None:
    shallow = FINE.restrict("shallow", lambda card: len(card.stacks[0].layers) == 2)
    space = narrowed(shallow, "children", PAIRS)
    assert space.count() == 96
    design = space.sample(default_rng(0))
    assert space.card(design) == FINE.card(design)
    assert space.name == "children"


def test_formulas_stay_free() -> None:
    part = Record.of(layers=Repeat(Expressions(2), 2))
    space = Space("formulas", part, lambda design: design)
    design = space.sample(default_rng(0))
    assert narrowed(space, "children", {}, [design]).count() == space.count()
    assert narrowed(space, "children", {"layers": 2}, [design]).count() == Expressions(2).count()


def test_unknown_lists_and_impossible_ties_are_refused() -> None:
    with pytest.raises(IllegalInput, match=r"no list of space .* is called 'layer'. Nearest: 'layers'"):
        narrowed(FINE, "wrong", {"layer": 2})
    with pytest.raises(IllegalInput, match="a group of layers has at least one entry, not 0"):
        narrowed(FINE, "wrong", {"layers": 0})
