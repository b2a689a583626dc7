from itertools import pairwise
from typing import Any

import pytest

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.options import Reader, Writer
from formwright.core.rng import derive
from formwright.space.zoo import load_space
from formwright.supernet.hull import Hull, hull
from formwright.supernet.rules import RULES, Largest, ProgressiveShrinking, Rule, Sandwich, Uniform

NANO = hull(load_space("autoformer-nano"))
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
    data = Writer().value(rule)
    reader = Reader()
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
    "make",
    [
        lambda: Sandwich(-1),
        lambda: Uniform(0),
        lambda: ProgressiveShrinking(designs=0),
        lambda: ProgressiveShrinking(largest=1.0),
        lambda: ProgressiveShrinking(largest=-0.1),
        lambda: ProgressiveShrinking(last=0.0),
    ],
)
def test_what_cannot_be_is_refused(make: Any) -> None:
    with pytest.raises(IllegalInput):
        make()


def test_constraints_and_names_of_choices() -> None:
    narrow = NANO.space.restrict("narrow", lambda card: card.stacks[0].layers[0].width < 32)
    ends = hull(narrow)
    assert ends.largest == NANO.largest
    rule = ProgressiveShrinking(largest=0.2)
    assert drawn(rule, 0, ends=ends) == [NANO.largest]
    assert all(card.stacks[0].layers[0].width < 32 for step in range(95, 100) for card in drawn(rule, step, ends=ends))
    with pytest.raises(UnknownName, match="head"):
        ProgressiveShrinking(order=("head",)).bind(NANO, STEPS)
