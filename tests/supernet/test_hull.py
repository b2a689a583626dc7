from dataclasses import replace
from typing import Any

import pytest
import torch

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.arch.heads import HeadSpec
from formwright.core.rng import derive
from formwright.cost import params
from formwright.nn.build import build
from formwright.nn.inherit import extract, inherit
from formwright.space.combinators import Choice, Record, Switch
from formwright.space.design import Case
from formwright.space.elastic import ElasticChoices
from formwright.space.narrow import narrowed
from formwright.space.repeat import Repeat, Row
from formwright.space.space import Space
from formwright.space.zoo import load_space
from formwright.space.zoo.bert import TINY
from formwright.supernet.hull import find_hull, raised, reads_all, regrouped_heads
from formwright.supernet.library import library_of

HEAD = HeadSpec("sequence-classification", 10)
SPACE = load_space("autoformer-nano")


@pytest.mark.parametrize(
    "name",
    [
        "autoformer-nano",
        "autoformer-tiny",
        "lighthubert-small",
        "lighthubert-base",
        "autotinybert",
        "elastic",
        "hat",
        "supershaper",
    ],
)
def test_the_largest_design_holds_all_others(name: str) -> None:
    space = load_space(name)
    hull = find_hull(space)
    assert hull.whole
    assert hull.largest != hull.smallest
    assert not reads_all(space, hull.smallest)


def test_a_size_that_few_designs_have_is_found_where_the_largest_design_lacks_it() -> None:
    """Of 100 options of a layer only one is wider; 2.5 % of the designs have it, or 4 % if all are equally likely."""
    whole = find_hull(SPACE).largest
    (block, *_) = whole.encoder.layers
    wider = replace(block, feed_forward=(2 * block.feed_forward[0],))

    def build_card(design: Any) -> Card:
        layers = tuple(wider if row == 50 else block for row in design.rows)
        return replace(whole, encoder=replace(whole.encoder, layers=layers))

    space = Space("one wider", Record.of(rows=Repeat(Choice(tuple(range(100))), (1, 2, 3, 4))), build_card)
    assert not reads_all(space, whole)
    assert reads_all(space.restrict("none wider", lambda card: wider not in card.encoder.layers), whole)


def test_a_size_that_most_designs_have_is_found_though_their_choices_are_rarely_drawn_together() -> None:
    """All designs but 20 are of the last of 20 cases within each other, which 20 fair coins decide."""
    whole = find_hull(SPACE).largest
    (block, *_) = whole.encoder.layers
    wider = replace(block, feed_forward=(2 * block.feed_forward[0],))
    root: Any = Record.of(rows=Repeat(Choice((0, 1)), 20))
    for _ in range(20):
        root = Switch.of(here=Record.of(), deeper=root)

    def build_card(design: Any) -> Card:
        while isinstance(design, Case) and design.tag == "deeper":
            design = design.value
        layer = block if isinstance(design, Case) else wider
        return replace(whole, encoder=replace(whole.encoder, layers=(layer,)))

    assert not reads_all(Space("mostly wider", root, build_card), whole)


@pytest.mark.parametrize(
    "name", ["flexibert-nano", "nas-bert", "magic-nano", pytest.param("autobert-zero-nano", marks=pytest.mark.slow)]
)
def test_spaces_that_choose_between_kinds_have_ends_by_size(name: str) -> None:
    space = load_space(name)
    hull = find_hull(space)
    assert not hull.whole
    drawn = (space.sample(derive(5, turn), "gene" if turn % 2 else "design") for turn in range(300))
    sizes = [params(space.card(design)) for design in drawn]
    assert params(hull.smallest) <= min(sizes) < max(sizes) <= params(hull.largest)


@pytest.mark.parametrize("name", ["flexibert-nano", "magic-nano", "fast-bert-nano"])
def test_no_other_start_leads_beyond_an_end_between_kinds(name: str) -> None:
    space = load_space(name)
    hull = find_hull(space)
    for seed in range(4):
        for sign, end in ((1, hull.largest), (-1, hull.smallest)):
            design, size = space.sample(derive(seed, "other start")), -float("inf")
            while (found := max(space.neighbours(design), key=lambda one: sign * params(space.card(one)))) and (
                sign * params(space.card(found)) > size
            ):
                design, size = found, sign * params(space.card(found))
            assert size <= sign * params(end)


def test_ends_between_kinds_are_found_though_samples_hardly_show_them() -> None:
    """One of 8^12 designs has the widest layer everywhere; twelve have one layer, and that the narrowest."""
    (block, *_) = find_hull(SPACE).largest.encoder.layers
    layers = {"none": None} | {f"wide-{times}": replace(block, feed_forward=(8 * times,)) for times in range(1, 8)}
    whole = find_hull(SPACE).largest

    def build_card(design: Any) -> Card:
        found = tuple(layers[name] for name in design.names if layers[name] is not None)
        return replace(whole, encoder=replace(whole.encoder, layers=found))

    space = Space("kinds", Record.of(names=Repeat(Choice(tuple(layers)), 12)), build_card)
    hull = find_hull(space)
    assert [layer.feed_forward for layer in hull.largest.encoder.layers] == [(56,)] * 12
    assert [layer.feed_forward for layer in hull.smallest.encoder.layers] == [(8,)]
    library = library_of(space)
    assert all(library.holds(tensors_of(card)) for card in (hull.largest, hull.smallest))


def test_ends_between_kinds_keep_the_constraints_of_a_space() -> None:
    whole = find_hull(SPACE).largest
    (block, *_) = whole.encoder.layers

    def build_card(design: Any) -> Card:
        layer = replace(block, activation=design.kind, feed_forward=(design.width,))
        return replace(whole, encoder=replace(whole.encoder, layers=(layer,)))

    space = Space("kinds", Record.of(kind=Choice(("gelu", "relu")), width=Choice(tuple(range(1, 9)))), build_card)
    hull = find_hull(space.restrict("middle", lambda card: 3 <= card.encoder.layers[0].feed_forward[0] <= 6))
    assert [card.encoder.layers[0].feed_forward for card in (hull.largest, hull.smallest)] == [(6,), (3,)]


@pytest.mark.parametrize(
    ("part", "largest", "smallest"),
    [
        (Row((Choice((2, 1)), Choice((30, 40))), (4, 3), tied=2), [2, 2, 40, 40], [1, 1, 30]),
        (Repeat(Choice((2, 1)), (2, 6), tied=2), [2, 2, 2], [1]),  # which stores one value of each group
    ],
)
def test_members_of_one_group_have_one_value_at_both_ends(part: Any, largest: list[int], smallest: list[int]) -> None:
    hull = find_hull(Space("tied", part, list))
    assert (hull.largest.to_json(), hull.smallest.to_json()) == (largest, smallest)


def test_elastic_and_narrower_spaces_have_ends_too() -> None:
    choices = ElasticChoices(TINY, ((0, 1, 2), (2, 1)), ((16, 512), (0, 32)), (64, 128))
    hull = find_hull(choices.space)
    assert (hull.largest, hull.smallest) == (choices.largest, choices.smallest)
    designs = [SPACE.sample(derive(0, turn)) for turn in range(3)]
    hull = find_hull(narrowed(SPACE, "some", {}, designs))
    assert len(hull.largest.stacks[0].layers) == max(len(design.layers) for design in designs)


@pytest.mark.parametrize(
    ("options", "largest"), [(((1, 2), (2, 1)), None), (((1, 2), (2, 2)), (2, 2)), ((None,), None)]
)
def test_tuples_have_an_end_where_one_is_largest_everywhere(options: tuple, largest: tuple | None) -> None:
    seen = []
    space = Space("own", Record.of(sizes=Choice(options)), lambda design: seen.append(design.sizes) or TINY)
    hull = find_hull(space)
    assert hull.ordered == (largest is not None or len(options) == 1)
    if hull.ordered:
        assert seen[0] == (largest or options[0])


def test_numbers_are_raised_and_kinds_stay() -> None:
    space = load_space("flexibert-nano")
    for turn in range(20):
        design = space.sample(derive(2, turn), "gene")
        high = raised(space.root, design)
        assert space.contains(high)
        assert raised(space.root, high) == high
        kinds = [layer.operation.tag for layer in design.layers]
        assert [layer.operation.tag for layer in high.layers][: len(kinds)] == kinds
        assert {layer.hidden for layer in high.layers} == {64}
        assert len(high.layers) == 2


def cards() -> list[Card]:
    return [find_hull(SPACE).smallest, *(SPACE.card(SPACE.sample(derive(1, turn), "gene")) for turn in range(6))]


def test_a_sub_network_equals_a_model_of_its_own_with_the_sliced_weights() -> None:
    whole_card = find_hull(SPACE).largest
    whole = build(whole_card, head=HEAD, seed=3)
    generator = torch.Generator().manual_seed(0)
    for weight in whole.parameters():  # fresh biases, and what starts at one, would hide a wrong slice
        weight.data.add_(0.1 * torch.randn(weight.shape, generator=generator))
    pictures = torch.rand(4, 1, 8, 8, generator=generator)
    weights = dict(whole.named_parameters())
    for card in cards():
        views = inherit(weights, whole_card, card, head=HEAD)
        model = build(card, head=HEAD, seed=9)
        for name, weight in model.named_parameters():
            # heads are packed one after another, and all tables have the same rows: every slice is a leading one
            weight.data.copy_(weights[name][tuple(map(slice, weight.shape))])
        assert torch.equal(model.eval()(pictures), extract(views, card, head=HEAD).eval()(pictures))
        first, wide = card.stacks[0].layers[0], whole_card.stacks[0].layers[0]
        mixer = "transformer.encoder.layers.0.mixer"
        kept = {name: tuple(weight.shape) for name, weight in views.weights.items() if name.startswith(mixer)}
        assert any(shape[0] == 3 * 8 * first.mixer.heads for shape in kept.values())  # queries, keys and values
        assert any(shape == (2, 10, 8) for shape in kept.values())  # positions, which the heads share
        assert wide.mixer.relative == first.mixer.relative


@pytest.mark.parametrize(("name", "regrouped"), [("hat-nano", True), ("autoformer-nano", False), ("gpt-nano", False)])
def test_designs_that_group_channels_into_other_heads_are_found(name: str, regrouped: bool) -> None:
    space = load_space(name)
    assert bool(regrouped_heads(space, find_hull(space).largest)) == regrouped


def test_what_is_larger_than_the_whole_is_not_grouped_into_other_heads() -> None:
    assert regrouped_heads(SPACE, find_hull(SPACE).smallest) == ""


def test_the_climb_to_an_end_goes_on_while_one_choice_makes_room_for_another() -> None:
    """A layer that is wider than the next one has one channel: each round over the choices lets one more layer grow."""
    whole = find_hull(SPACE).largest
    (block, *_) = whole.encoder.layers
    layers = {f"wide-{times}": replace(block, feed_forward=(8 * times,)) for times in range(1, 9)}

    def build_card(design: Any) -> Card:
        pairs = zip(design.names, (*design.names[1:], "wide-8"), strict=True)
        found = tuple(layers[one] if one <= other else replace(block, feed_forward=(1,)) for one, other in pairs)
        return replace(whole, encoder=replace(whole.encoder, layers=found))

    hull = find_hull(Space("steps", Record.of(names=Repeat(Choice(tuple(layers)), 6)), build_card))
    assert [layer.feed_forward for layer in hull.largest.encoder.layers] == [(64,)] * 6
