import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.supernet.experts import Bottleneck, Experts, experts_installed
from tests.supernet.small import CHANNELS, FAMILIES, HEADS, LAYERS, SPEC, card, model
from tests.supernet.test_importance import random_importance

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.core.errors import IllegalInput
from formwright.cost import macs, params
from formwright.nn.inherit import inherit
from formwright.space.elastic import ElasticChoices
from formwright.space.elastic_parts import LayerSizes
from formwright.supernet.automatic import BudgetMatch, Thresholds, automatic, sub_network, targets_between
from formwright.supernet.importance import Importance, magnitude, reordered, uniform

FULL = ((HEADS, CHANNELS),) * LAYERS


def cost(one: Card) -> float:
    return float(macs(one, 8))


def thresholds(seed: int = 0, multiple: int = 4) -> Thresholds:
    return Thresholds(card(), random_importance(seed), cost, multiple)


def test_keeping_everything_or_nothing() -> None:
    everything = (HEADS + CHANNELS) * LAYERS
    assert thresholds().widths(everything) == FULL
    assert sub_network(card(), FULL) == card()
    assert thresholds().widths(0) == ((0, 0),) * LAYERS


def test_the_most_important_parts_stay_rounded_up_to_what_is_fast() -> None:
    heads, channels = [np.array([3.0, 1, 2, 0]), np.zeros(CHANNELS) - 1]
    found = Thresholds(card(), Importance((heads, channels) * LAYERS), cost, 4)
    assert found.widths(3) == ((1, 0),) * LAYERS
    assert found.widths(6) == ((2, 0),) * LAYERS
    for kept in range(0, 80, 7):
        for _, channels in thresholds(multiple=8).widths(kept):
            assert channels % 8 == 0


@pytest.mark.parametrize(("channels", "left"), [(50, 1), (51, 0)])
def test_a_part_that_would_keep_less_than_a_fiftieth_is_removed(channels: int, left: int) -> None:
    layers = tuple(replace(layer, feed_forward=(channels,)) for layer in card().encoder.layers)
    one = replace(card(), encoder=replace(card().encoder, layers=layers))
    scores = (np.zeros(HEADS), np.eye(channels)[0])
    found = Thresholds(one, Importance(scores * LAYERS), cost, 1).widths(LAYERS)
    assert [row[1] for row in found] == [left] * LAYERS


def test_one_of_several_widths_never_exceeds_that_of_the_design() -> None:
    layers = tuple(replace(layer, feed_forward=(3, CHANNELS)) for layer in card().encoder.layers)
    one = replace(card(), encoder=replace(card().encoder, layers=layers))
    scores = tuple(np.zeros(size) for size in (HEADS, 3, CHANNELS))
    assert Thresholds(one, Importance(scores * LAYERS), cost, 16).widths(0) == ((0, 3, 16),) * LAYERS


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), share=st.floats(0.05, 1.2))
def test_no_other_threshold_comes_nearer(seed: int, share: float) -> None:
    wanted, found = share * cost(card()), thresholds(seed)
    met = found.nearest(wanted)
    everything = (HEADS + CHANNELS) * LAYERS
    costs = [cost(sub_network(card(), found.widths(kept))) for kept in range(everything + 1)]
    assert abs(met.cost - wanted) == min(abs(one - wanted) for one in costs)
    assert met.cost == cost(sub_network(card(), met.widths))


def test_it_says_how_close_it_came_and_equal_scores_stay_together() -> None:
    assert BudgetMatch(50.0, 55.0, FULL).off == pytest.approx(0.1)
    assert BudgetMatch(50.0, 40.0, FULL).off == pytest.approx(-0.2)
    met = thresholds().nearest(2 * cost(card()))
    assert met.off == -0.5  # nothing is larger than the model
    with pytest.raises(IllegalInput, match="above 0, not 0"):
        thresholds().nearest(0.0)
    found = Thresholds(card(), uniform(card()), cost)
    met = found.nearest(0.5 * cost(card()))
    assert met.widths in (FULL, ((0, 0),) * LAYERS)


def test_the_space_is_the_union_of_what_was_found() -> None:
    wanted = targets_between(0.3 * cost(card()), 0.9 * cost(card()), 4)
    assert wanted == pytest.approx([share * cost(card()) for share in (0.3, 0.5, 0.7, 0.9)])
    choices, found = automatic(thresholds(), wanted, whole=False)
    for met in found:
        assert choices.space.card(choices.design(met.widths)) == sub_network(card(), met.widths)
    layers = list(zip(*(met.widths for met in found), strict=True))
    assert choices.heads == tuple(tuple(sorted({heads for heads, _ in layer})) for layer in layers)
    assert choices.feed_forward == tuple(tuple(sorted({wide for _, wide in layer})) for layer in layers)
    assert max(met.cost for met in found) < cost(card())


def test_what_other_costs_found_is_in_the_space_too() -> None:
    wanted = targets_between(0.6 * cost(card()), 0.9 * cost(card()), 2)
    few = Thresholds(card(), random_importance(0), lambda one: float(params(one)), 4, "params").nearest(
        0.5 * params(card())
    )
    choices, found = automatic(thresholds(), wanted, whole=True, further=[few])
    assert found[-1] == few
    assert few.measure == "params"
    assert choices.space.card(choices.design(few.widths)) == sub_network(card(), few.widths)
    without, _ = automatic(thresholds(), wanted, whole=True)
    assert params(choices.smallest) < params(without.smallest)


def test_the_largest_can_be_the_model_itself() -> None:
    wanted = targets_between(0.4 * cost(card()), 0.8 * cost(card()), 2)
    for whole in (True, False):
        choices, _ = automatic(thresholds(), wanted, whole=whole)
        assert (choices.largest == card()) == whole
        space = choices.space
        assert any(space.card(design) == card() for design in space.enumerate()) == whole


@pytest.mark.parametrize(("whole", "sizes"), [(True, {8, 12, 16}), (False, {8, 12})])
def test_hidden_sizes_stand_beside_what_was_found(whole: bool, sizes: set[int]) -> None:
    wanted = targets_between(0.4 * cost(card()), 0.8 * cost(card()), 2)
    narrow, before = automatic(thresholds(), wanted, whole=whole)
    wide, found = automatic(thresholds(), wanted, whole=whole, hidden=(8, 12))
    assert found == before
    plain, space = narrow.space, wide.space
    assert wide.count == space.count() == plain.count() * len(sizes)
    cards = [space.card(design) for design in space.enumerate()]
    assert {one.output_width for one in cards} == sizes
    assert {one.digest for one in cards if one.output_width == 8} == {
        sub_network(card(), widths_of(one), 8).digest for one in map(plain.card, plain.enumerate())
    }
    assert any(one == card() for one in cards) == whole


def widths_of(one: Card) -> LayerSizes:
    """List heads and channels of each layer."""
    blocks = [layer for layer in one.encoder.layers if isinstance(layer, Block)]
    return tuple((getattr(block.mixer, "heads", 0), sum(block.feed_forward)) for block in blocks)


@pytest.mark.parametrize(("low", "high", "number"), [(1.0, 2.0, 1), (2.0, 1.0, 3), (0.0, 1.0, 3)])
def test_targets_that_do_not_rise_are_refused(low: float, high: float, number: int) -> None:
    with pytest.raises(IllegalInput, match="2 or more targets"):
        targets_between(low, high, number)


def test_experts_are_scored_ordered_and_cut_like_heads() -> None:
    block = Block(16, Experts(6, 3), (CHANNELS,))
    whole = replace(card(), encoder=replace(card().encoder, layers=(block, *card().encoder.layers[1:])))
    one = model(2, of=whole)
    weights = dict(one.named_parameters())
    scores = magnitude(weights, whole, SPEC)
    assert [len(row) for row in scores.scores] == [6, CHANNELS, *((HEADS, CHANNELS) * (LAYERS - 1))]
    mixer = "transformer.encoder.layers.0.mixer"
    inner, gate, output = (weights[f"{mixer}.{name}.weight"] for name in ("inner", "gate", "output"))
    rows = torch.cat((inner.view(6, -1), gate, output.view(16, 6, 3).movedim(1, 0).flatten(1)), 1)
    assert scores.scores[0] == pytest.approx(rows.abs().mean(1).tolist(), rel=1e-5)
    moved = reordered(weights, whole, scores, SPEC)
    assert torch.equal(moved[f"{mixer}.gate.weight"], gate[np.argsort(-scores.scores[0]).copy()])
    found = Thresholds(whole, scores, cost, 4)
    choices, met = automatic(found, targets_between(0.4 * cost(whole), 0.9 * cost(whole), 4), whole=True)
    assert choices.largest == whole
    assert choices.smallest.encoder.layers[0].mixer.experts in range(1, 6)
    with experts_installed():
        assert ElasticChoices.from_json(json.loads(json.dumps(choices.to_json()))) == choices
    for each in met:
        small = choices.space.card(choices.design(each.widths))
        assert small == sub_network(whole, each.widths)
        assert inherit(moved, whole, small, head=SPEC).missing == ()


def test_channels_of_a_new_operation_are_rounded_like_those_of_feed_forward_layers() -> None:
    block = Block(16, Bottleneck(100), (CHANNELS,))
    whole = replace(card(), encoder=replace(card().encoder, layers=(block,)))
    found = Thresholds(whole, Importance((np.arange(100.0, 200.0), np.zeros(CHANNELS))), cost, 16)
    assert [found.widths(kept)[0][0] for kept in (0, 10, 50, 100)] == [16, 16, 64, 100]


@pytest.mark.parametrize("case", FAMILIES)
def test_every_family_has_an_automatic_space_whose_designs_read_all_their_weights(case: str) -> None:
    one, spec = FAMILIES[case]
    full = float(macs(one, 9))
    found = Thresholds(one, random_importance(4, one), lambda card: float(macs(card, 9)), 4)
    choices, met = automatic(found, targets_between(0.5 * full, 0.9 * full, 3), whole=True, hidden=(8,))
    assert choices.largest == one
    assert {stack.output_width for stack in choices.smallest.stacks} == {8}
    assert ElasticChoices.from_json(choices.to_json()) == choices
    weights = dict(model(of=one, spec=spec).named_parameters())
    for each in met:
        card = choices.space.card(choices.design(each.widths))
        assert card == sub_network(one, each.widths)
        assert inherit(weights, one, card, head=spec).missing == ()
