from itertools import pairwise
from typing import Any

import pytest
import torch

from formwright.arch.card import Card
from formwright.core.codec import range_faults
from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.options import PartReader, PartWriter
from formwright.core.rng import derive
from formwright.nn.build import build
from formwright.nn.inherit import extract, inherit
from formwright.nn.task_model import HeadSpec
from formwright.space.combinators import Choice, Record
from formwright.space.narrow import narrowed
from formwright.space.repeat import Repeat, Row
from formwright.space.space import Space
from formwright.space.zoo import load_space
from formwright.space.zoo.bert import TINY
from formwright.space.zoo.elastic import ElasticChoices
from formwright.supernet.rules import (
    RULES,
    Hull,
    Largest,
    ProgressiveShrinking,
    Rule,
    Sandwich,
    Uniform,
    check_readable,
    choices_of,
    hull,
    opened,
)

SPACE = load_space("autoformer-nano")
NANO = hull(SPACE)
STEPS = 100
ALL: list[Rule] = [Largest(), Uniform(), Uniform(3, "design"), Sandwich(2), ProgressiveShrinking()]


def drawn(rule: Rule, step: int, seed: int = 0, ends: Hull = NANO) -> list[Card]:
    return rule.bind(ends, STEPS)(derive(seed, "step", step), step)


def genes(card: Card) -> dict[str, Any]:
    layers = card.stacks[0].layers
    return {
        "length": len(layers),
        "width": layers[0].width,
        "heads": {layer.mixer.heads for layer in layers},
        "ratio": {layer.feed_forward[0] / layer.width for layer in layers},
    }


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.NAME)
def test_rules_are_parts_whose_cards_follow_from_seed_and_step(rule: Rule) -> None:
    for step in (0, 40, 99):
        assert drawn(rule, step) == drawn(rule, step)  # bound twice, and asked in another order
    if rule != Largest():
        assert [drawn(rule, step) for step in range(90, 99)] != [drawn(rule, step, seed=1) for step in range(90, 99)]
    data = PartWriter().value(rule)
    reader = PartReader()
    assert reader.finished(reader.read(Rule, data), "rule") == rule
    assert RULES.get(rule.NAME) is type(rule)


@pytest.mark.parametrize("rule", [Largest(), Sandwich(0), Sandwich(3)], ids=lambda rule: rule.NAME)
def test_the_largest_design_comes_first_where_a_rule_says_so(rule: Rule) -> None:
    assert rule.LARGEST_FIRST
    assert all(drawn(rule, step)[0] == NANO.largest for step in range(5))


def test_a_sandwich_has_both_ends_and_some_between() -> None:
    cards = drawn(Sandwich(3), 0)
    assert (cards[0], cards[-1], len(cards)) == (NANO.largest, NANO.smallest, 5)
    assert len({one.digest for one in drawn(Sandwich(20), 1)}) > 10


def test_uniform_sampling_treats_all_values_of_a_choice_alike() -> None:
    cards = [drawn(Uniform(), step)[0] for step in range(600)]
    depths = [len(card.stacks[0].layers) for card in cards]
    assert all(0.19 < depths.count(depth) / 600 < 0.31 for depth in (1, 2, 3, 4))
    # of all designs, by contrast, nearly all are deep
    deep = [len(drawn(Uniform(by="design"), step)[0].stacks[0].layers) == 4 for step in range(100)]
    assert sum(deep) > 75


def test_choices_open_one_value_at_a_time() -> None:
    rule = ProgressiveShrinking(largest=0.2, order=("length", "heads"), designs=4, last=1.0)
    phases = [space for _, space in rule.phases(NANO.space)]
    assert len(phases) == 1 + 3 + 2 + 2 + 2  # the largest; depth, heads, then width and ratio as the space has them
    assert [space.count() for space in phases] == sorted(space.count() for space in phases)
    assert phases[-1].count() == NANO.space.count()
    assert {card.digest for step in range(20) for card in drawn(rule, step)} == {NANO.largest.digest}
    seen: dict[str, set[Any]] = {"length": set(), "heads": set(), "width": set(), "ratio": set()}
    for step in range(20, 47):  # the phases of depth
        for card in drawn(rule, step):
            found = genes(card)
            assert (found["width"], found["heads"], found["ratio"]) == (32, {4}, {2.0})
            seen["length"].add(found["length"])
    assert seen["length"] == {1, 2, 3, 4}
    for step in range(90, 100):
        for card in drawn(rule, step):
            found = genes(card)
            seen["width"].add(found["width"])
            seen["heads"] |= found["heads"]
            seen["ratio"] |= found["ratio"]
    assert seen == {"length": {1, 2, 3, 4}, "heads": {1, 2, 4}, "width": {16, 24, 32}, "ratio": {0.5, 1.0, 2.0}}


def test_shrinking_may_begin_at_once_and_its_last_phase_is_longer() -> None:
    rule = ProgressiveShrinking(largest=0.0)
    assert len(drawn(rule, 0)) == 2
    assert drawn(rule, 10 * STEPS)
    ends = [end for end, _ in ProgressiveShrinking(largest=0.0, last=3.0).phases(NANO.space)]
    lengths = [round((after - before) * 17, 6) for before, after in pairwise(ends)]
    assert lengths == [1, 1, 3, 1, 3, 1, 3, 1, 3]
    assert ends[-1] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        (Sandwich(-1), "between"),
        (Uniform(0), "designs"),
        (ProgressiveShrinking(designs=0), "designs"),
        (ProgressiveShrinking(largest=1.1), "largest"),
        (ProgressiveShrinking(largest=-0.1), "largest"),
        (ProgressiveShrinking(last=0.0), "last"),
    ],
)
def test_options_out_of_range_are_found(rule: Rule, wrong: str) -> None:
    assert [fault.where for fault in range_faults(rule, "rule")] == [f"rule.{wrong}"]


def test_constraints_and_names_of_choices() -> None:
    narrow = NANO.space.restrict("narrow", lambda card: card.stacks[0].layers[0].width < 32)
    ends = hull(narrow)
    assert ends.largest == NANO.largest
    rule = ProgressiveShrinking(largest=0.2)
    assert drawn(rule, 0, ends=ends) == [NANO.largest]
    assert all(card.stacks[0].layers[0].width < 32 for step in range(95, 100) for card in drawn(rule, step, ends=ends))
    with pytest.raises(UnknownName, match="head"):
        ProgressiveShrinking(order=("head",)).bind(NANO, STEPS)


HEAD = HeadSpec("sequence-classification", 10)


@pytest.mark.parametrize(
    "name", ["autoformer-nano", "autoformer-tiny", "lighthubert-small", "lighthubert-base", "autotinybert", "elastic"]
)
def test_the_largest_design_holds_all_others(name: str) -> None:
    space = load_space(name)
    ends = hull(space)
    check_readable(space, ends.largest, samples=5)
    assert ends.largest != ends.smallest
    with pytest.raises(IllegalInput, match="share the weights"):
        check_readable(space, ends.smallest, samples=5)


@pytest.mark.parametrize("name", ["hat", "supershaper"])
def test_spaces_whose_designs_are_no_slices_are_refused(name: str) -> None:
    space = load_space(name)
    with pytest.raises(IllegalInput, match="cannot share"):
        check_readable(space, hull(space).largest)


@pytest.mark.parametrize("name", ["flexibert-nano", "nas-bert", "autobert-zero-nano", "evolved-transformer-nano"])
def test_spaces_that_choose_between_kinds_have_no_largest_design(name: str) -> None:
    with pytest.raises(IllegalInput, match=r"largest") as error:
        hull(load_space(name))
    assert name in str(error.value)


@pytest.mark.parametrize(
    ("part", "largest", "smallest"),
    [
        (Row((Choice((2, 1)), Choice((30, 40))), (4, 3), tied=2), [2, 2, 40, 40], [1, 1, 30]),
        (Repeat(Choice((2, 1)), (2, 6), tied=2), [2, 2, 2], [1]),  # which stores one value of each group
    ],
)
def test_members_of_one_group_have_one_value_at_both_ends(part: Any, largest: list[int], smallest: list[int]) -> None:
    ends = hull(Space("tied", part, list))
    assert (ends.largest.to_json(), ends.smallest.to_json()) == (largest, smallest)


def test_elastic_and_narrower_spaces_have_ends_too() -> None:
    choices = ElasticChoices(TINY, ((0, 1, 2), (2, 1)), ((16, 512), (0, 32)), (64, 128))
    ends = hull(choices.space)
    assert (ends.largest, ends.smallest) == (choices.largest, choices.smallest)
    designs = [SPACE.sample(derive(0, turn)) for turn in range(3)]
    ends = hull(narrowed(SPACE, "some", {}, designs))
    assert len(ends.largest.stacks[0].layers) == max(len(design.layers) for design in designs)


@pytest.mark.parametrize(
    ("options", "largest"), [(((1, 2), (2, 1)), None), (((1, 2), (2, 2)), (2, 2)), ((None,), None)]
)
def test_tuples_have_an_end_where_one_is_largest_everywhere(options: tuple, largest: tuple | None) -> None:
    seen = []
    space = Space("own", Record.of(sizes=Choice(options)), lambda design: seen.append(design.sizes) or TINY)
    if largest is None and len(options) > 1:
        with pytest.raises(IllegalInput, match="sizes"):
            hull(space)
    else:
        hull(space)
        assert seen[0] == (largest or options[0])


def test_choices_are_named_by_field_and_open_from_the_largest() -> None:
    assert list(choices_of(SPACE.root)) == [("width", 3), ("length", 4), ("heads", 3), ("ratio", 3)]
    assert opened(SPACE.root, {}).count() == 1
    assert opened(SPACE.root, {"length": 2}).count() == 2
    assert opened(SPACE.root, dict(choices_of(SPACE.root))).count() == SPACE.count()


def cards() -> list[Card]:
    return [hull(SPACE).smallest, *(SPACE.card(SPACE.sample(derive(1, turn), "gene")) for turn in range(6))]


def test_a_sub_network_equals_a_model_of_its_own_with_the_sliced_weights() -> None:
    whole_card = hull(SPACE).largest
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
