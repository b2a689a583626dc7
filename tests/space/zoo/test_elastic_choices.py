"""What sub-networks may be, written down and read again."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention, Identity
from formwright.core.errors import IllegalDesign, IllegalInput
from formwright.space.zoo.elastic_choices import ElasticChoices

HEADS, CHANNELS, WIDTH = 4, 64, 16
CARD = Card(encoder=Stack(TokenEmbedding(50, WIDTH, length=16), (Block(WIDTH, Attention(HEADS, 4), (CHANNELS,)),) * 2))
UNEVEN = ElasticChoices(CARD, ((1, 4), (0, 2, 4)), ((16, 64), (0, 32)))
ALIKE = ElasticChoices(CARD, ((1, 2, 4),) * 2, ((16, 64),) * 2)
HIDDEN = ElasticChoices(CARD, ((1, 4), (4,)), ((64,), (16, 64)), (8, 12, 16))
ALL = [UNEVEN, ALIKE, HIDDEN]


def widths(most: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.sets(st.integers(0, most), min_size=1, max_size=4).map(lambda found: tuple(sorted(found)))


def per_layer(most: int) -> st.SearchStrategy[tuple[tuple[int, ...], ...]]:
    return st.tuples(widths(most), widths(most))


hidden = st.one_of(
    st.just(()), st.sets(st.integers(1, WIDTH), min_size=1, max_size=3).map(lambda one: tuple(sorted(one)))
)
choices = st.builds(ElasticChoices, st.just(CARD), per_layer(HEADS), per_layer(CHANNELS), hidden)


def parts(card: Card) -> list[tuple[int, int]]:
    assert card.encoder is not None
    blocks = [layer for layer in card.encoder.layers if isinstance(layer, Block)]
    return [(getattr(block.mixer, "heads", 0), sum(block.feed_forward)) for block in blocks]


@given(choices)
def test_choices_survive_json(one: ElasticChoices) -> None:
    again = ElasticChoices.from_json(json.loads(json.dumps(one.to_json())))
    assert again == one
    assert hash(again) == hash(one)


@given(choices)
def test_the_largest_and_the_smallest_are_the_ends_of_the_space(one: ElasticChoices) -> None:
    assert parts(one.largest) == [(max(h), max(c)) for h, c in zip(one.heads, one.feed_forward, strict=True)]
    assert parts(one.smallest) == [(min(h), min(c)) for h, c in zip(one.heads, one.feed_forward, strict=True)]
    assert one.largest.output_width == max(one.hidden, default=WIDTH)
    assert one.smallest.output_width == min(one.hidden, default=WIDTH)


@pytest.mark.parametrize("one", ALL)
def test_count_is_the_number_of_sub_networks(one: ElasticChoices) -> None:
    cards = [one.space.card(design) for design in one.space.enumerate()]
    assert one.count == one.space.count() == len(cards) == len({card.digest for card in cards})
    assert {one.largest.digest, one.smallest.digest} <= {card.digest for card in cards}


def test_a_part_of_no_width_is_left_out() -> None:
    assert UNEVEN.smallest.encoder is not None
    last = UNEVEN.smallest.encoder.layers[1]
    assert isinstance(last, Block)
    assert (last.mixer, last.feed_forward) == (Identity(), ())


@pytest.mark.parametrize("one", ALL)
def test_a_design_is_found_by_its_widths(one: ElasticChoices) -> None:
    space = one.space
    for design in space.enumerate():
        card = space.card(design)
        size = card.output_width if one.hidden else None
        assert space.card(one.design(parts(card), size)) == card
        assert space.from_json(json.loads(json.dumps(space.to_json(one.design(parts(card), size))))) == design


def test_without_a_hidden_size_a_design_has_the_largest() -> None:
    assert HIDDEN.space.card(HIDDEN.design(((4, 64), (4, 16)))).output_width == 16
    assert HIDDEN.space.card(HIDDEN.design(((4, 64), (4, 16)), 8)).output_width == 8


def test_widths_that_are_no_choice_are_refused() -> None:
    with pytest.raises(IllegalDesign, match="is 3; allowed: 1, 4"):
        UNEVEN.design(((3, 64), (4, 32)))
    with pytest.raises(IllegalDesign, match="is 9; allowed: 8, 12, 16"):
        HIDDEN.design(((4, 64), (4, 16)), 9)


def stored(**changes: Any) -> Any:
    return {**UNEVEN.to_json(), **changes}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ([], "must have the fields"),
        (stored(depth=3), "must have the fields"),
        (stored(heads=3), "heads must list, for every layer"),
        (stored(heads=[[], [1]]), "heads must list, for every layer"),
        (stored(feed_forward=[16, 32]), "feed_forward must list, for every layer"),
        (stored(hidden=None), "hidden"),
        (stored(hidden=8), "hidden"),
    ],
)
def test_what_is_no_list_of_choices_is_refused(data: Any, told: str) -> None:
    with pytest.raises(IllegalInput, match=told):
        ElasticChoices.from_json(data)
