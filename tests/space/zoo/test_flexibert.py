from collections.abc import Sequence
from itertools import islice
from typing import Any

import pytest
from numpy.random import default_rng

from formwright.cost import params, params_with_mlm_head
from formwright.space import Case, Fields, Space
from formwright.space.zoo import load_card, load_space
from formwright.space.zoo.flexibert import S1, S1_STAR, S2

INITIAL_SIZES = {"tiny": (2, 128), "2-256": (2, 256), "4-128": (4, 128), "mini": (4, 256)}
INITIAL_OPERATIONS = {"bert": Case("sa", "sdp"), "fnet": Case("lt", "dft"), "convbert": Case("dsc", 9)}


def layer(operation: Case, heads: int, hidden: int, width: int, depth: int) -> Fields:
    stack = Fields.of(width=width, depth=depth)
    return Fields.of(operation=operation, heads=heads, hidden=hidden, feed_forward=stack)


def layer_with_stack(one: Fields, stack: tuple[int, ...]) -> Fields:
    return Fields(tuple((gene, stack if gene == "feed_forward" else value) for gene, value in one.items()))


SDP, WMA, DCT = Case("sa", "sdp"), Case("sa", "wma"), Case("lt", "dct")
FREE_DESIGNS = {
    "flexibert-mini": [layer(SDP, 2, 256, 512, 3)] * 2 + [layer(DCT, 4, 128, 1024, 1)] * 2,
    "flexibert-mini-without-second-order": [layer(SDP, 4, 128, 1024, 1), layer(WMA, 4, 128, 1024, 1)],
    "flexibert-mini-without-heteroscedastic": [layer(DCT, 4, 256, 1024, 3)] * 2 + [layer(SDP, 4, 128, 512, 3)] * 2,
}


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("flexibert-bert-mini", 16_555_097),
        ("flexibert-bert-tiny", 7_103_321),
        ("flexibert-mini-without-second-order", 7_294_617),
    ],
)
def test_published_parameters_with_the_language_model_head(name: str, published: int) -> None:
    assert params_with_mlm_head(load_card(name)) == published


def assert_holds(space: Space, name: str, layers: Sequence[Any]) -> None:
    design = Fields.of(layers=tuple(layers))
    assert space.contains(design)
    assert space.card(design) == load_card(name)


@pytest.mark.parametrize("name", FREE_DESIGNS)
def test_the_spaces_of_free_layers_and_free_stacks_hold_the_published_designs(name: str) -> None:
    layers = FREE_DESIGNS[name]
    stacks = [layer_with_stack(one, (one.feed_forward.width,) * one.feed_forward.depth) for one in layers]
    assert_holds(S1, name, layers)
    assert_holds(S1_STAR, name, stacks)


@pytest.mark.parametrize("size", INITIAL_SIZES)
@pytest.mark.parametrize("family", INITIAL_OPERATIONS)
def test_the_paired_space_holds_the_designs_that_the_search_starts_from(family: str, size: str) -> None:
    depth, hidden = INITIAL_SIZES[size]
    pair = layer(INITIAL_OPERATIONS[family], hidden // 64, hidden, 4 * hidden, 1)
    assert_holds(S2, f"flexibert-{family}-{size}", [pair] * (depth // 2))


def test_pairs_of_layers_share_every_choice() -> None:
    assert f"{params(load_card('flexibert-large')) / 1e6:.2f}M" == "319.22M"
    rng = default_rng(0)
    for _ in range(50):
        layers = S2.card(S2.sample(rng)).stacks[0].layers
        assert len(layers) in (2, 4)
        assert layers[::2] == layers[1::2]
    assert len({S2.card(design).digest for design in S2.enumerate()}) == 9_312


def test_a_paired_nano_design_is_one_of_free_layers_and_of_free_stacks() -> None:
    nano, free, free_stacks = (load_space(f"flexibert-nano{level}") for level in ("", "-s1", "-s1star"))
    rng = default_rng(1)
    for _ in range(20):
        pairs = nano.sample(rng, "gene")["layers"]
        layers = [one for one in pairs for _ in range(2)]
        stacks = [layer_with_stack(one, (one.feed_forward.width,) * one.feed_forward.depth) for one in layers]
        card = nano.card(Fields.of(layers=pairs))
        for space, found in ((free, layers), (free_stacks, stacks)):
            design = Fields.of(layers=tuple(found))
            assert space.contains(design)
            assert space.card(design) == card


def test_levels_differ_and_published_sizes_count_idle_parameters() -> None:
    levels = ["", "-s1", "-s1star"]
    names = [f"{family}{level}" for family in ("flexibert", "flexibert-nano") for level in levels]
    assert len({load_space(name).about for name in names}) == len(names)
    for name, idle in [("flexibert", True), ("flexibert-nano", False), ("flexibert-nano-s1star", False)]:
        space = load_space(name)
        assert {space.card(design).idle > 0 for design in islice(space.enumerate(), 200)} == {idle}
