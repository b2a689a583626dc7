from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from math import inf, nan
from typing import Any

import pytest

from formwright.arch.card import Card
from formwright.core.codec import range_faults
from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.rng import derive
from formwright.space.zoo import load_space
from formwright.supernet.hull import Hull, find_hull
from formwright.supernet.rules import (
    RULES,
    Largest,
    Phases,
    ProgressiveShrinking,
    Rule,
    Sandwich,
    SplitBatch,
    Uniform,
    Walk,
    choices_of,
    opened,
)
from formwright.testing.rule_contract import RuleContract

SPACE = load_space("autoformer-nano")
NANO = find_hull(SPACE)
STEPS = 100
ALL: list[Rule] = [
    Largest(),
    Uniform(),
    Uniform(3, "design"),
    Uniform(3, rows="apart"),
    Sandwich(2),
    ProgressiveShrinking(),
    Walk(7),
    Phases((Largest(), Uniform(2)), (0.1, 0.9)),
]


def drawn(rule: Rule, step: int, seed: int = 0, hull: Hull = NANO) -> list[Card]:
    return rule.bind(hull, STEPS, seed)(derive(seed, "step", step), step)


def genes(card: Card) -> dict[str, Any]:
    layers = card.stacks[0].layers
    return {
        "length": len(layers),
        "width": layers[0].width,
        "heads": {layer.mixer.heads for layer in layers},
        "ratio": {layer.feed_forward[0] / layer.width for layer in layers},
    }


class TestRules(RuleContract):
    def examples(self) -> list[Rule]:
        return ALL


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.NAME)
def test_rules_are_registered_and_another_seed_draws_others(rule: Rule) -> None:
    if rule != Largest():
        assert [drawn(rule, step) for step in range(90, 99)] != [drawn(rule, step, seed=1) for step in range(90, 99)]
    assert RULES.get(rule.NAME) is type(rule)


@pytest.mark.parametrize("rule", [Largest(), Sandwich(0), Sandwich(3)], ids=lambda rule: rule.NAME)
def test_the_largest_design_comes_first_where_a_rule_says_so(rule: Rule) -> None:
    assert rule.LARGEST_FIRST
    assert all(drawn(rule, step)[0] == NANO.largest for step in range(5))


def test_a_sandwich_has_both_ends_and_some_between() -> None:
    cards = drawn(Sandwich(3), 0)
    assert (cards[0], cards[-1], len(cards)) == (NANO.largest, NANO.smallest, 5)
    assert len({one.digest for one in drawn(Sandwich(20), 1)}) > 10


def test_the_designs_between_are_drawn_among_all_designs_or_choice_by_choice() -> None:
    """Among all designs nearly all are deep; choice by choice all depths are equally likely."""
    shallow = {}
    for by in ("design", "gene"):
        rule = Sandwich(2, by=by)
        cards = [card for step in range(300) for card in drawn(rule, step)[1:-1]]
        depths = [len(card.stacks[0].layers) for card in cards]
        shallow[by] = {depth: depths.count(depth) / len(depths) for depth in (1, 2, 3, 4)}
    assert all(0.2 < share < 0.3 for share in shallow["gene"].values())
    assert shallow["design"][4] > 0.8
    assert shallow["design"][1] < 0.05
    assert Sandwich(2).by == "design"


def test_rules_with_phases_say_when_they_change() -> None:
    assert [rule.switches for rule in ALL] == [[], [], [], [], [], [0.25, 1.0], [], [0.1, 1.0]]
    rule = ProgressiveShrinking(largest=0.4)
    change = round(rule.switches[0] * STEPS)
    assert {card == NANO.largest for step in range(change) for card in drawn(rule, step)} == {True}
    assert {card == NANO.largest for step in range(change, change + 9) for card in drawn(rule, step)} == {True, False}


def test_rules_whose_designs_depend_on_how_much_is_done_say_so() -> None:
    for rule in ALL:
        draws = [[rule.bind(NANO, steps)(derive(0, "step", step), step) for step in range(30)] for steps in (30, 300)]
        assert (draws[0] != draws[1]) == rule.FOLLOWS_SHARE


def test_uniform_sampling_treats_all_values_of_a_choice_alike() -> None:
    cards = [drawn(Uniform(), step)[0] for step in range(600)]
    depths = [len(card.stacks[0].layers) for card in cards]
    assert all(0.19 < depths.count(depth) / 600 < 0.31 for depth in (1, 2, 3, 4))
    # of all designs, by contrast, nearly all are deep
    deep = [len(drawn(Uniform(by="design"), step)[0].stacks[0].layers) == 4 for step in range(100)]
    assert sum(deep) > 75


@pytest.mark.parametrize("steps", [6, 7, 33, 101])
@pytest.mark.parametrize("share", [0.25, 0.4, 1 / 3])
def test_a_shrinking_begins_at_the_step_at_which_phases_and_lessons_change(share: float, steps: int) -> None:
    """A share such as 0.25 of 33 steps ends between two of them."""
    shrinking = ProgressiveShrinking(largest=share, designs=2).bind(NANO, steps)
    phases = Phases((Largest(), Uniform(2)), (share, 1 - share)).bind(NANO, steps)
    numbers = [[len(draw(derive(0, "step", step), step)) for step in range(steps)] for draw in (shrinking, phases)]
    first = round(share * steps)
    assert numbers == [[1] * first + [2] * (steps - first)] * 2


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
        (Walk(0), "restart"),
    ],
)
def test_options_out_of_range_are_found(rule: Rule, wrong: str) -> None:
    assert [fault.where for fault in range_faults(rule, "rule")] == [f"rule.{wrong}"]


def test_constraints_and_names_of_choices() -> None:
    narrow = NANO.space.restrict("narrow", lambda card: card.stacks[0].layers[0].width < 32)
    hull = find_hull(narrow)
    assert hull.largest == NANO.largest
    rule = ProgressiveShrinking(largest=0.2)
    assert drawn(rule, 0, hull=hull) == [NANO.largest]
    assert all(card.stacks[0].layers[0].width < 32 for step in range(95, 100) for card in drawn(rule, step, hull=hull))
    with pytest.raises(UnknownName, match="head"):
        ProgressiveShrinking(order=("head",)).bind(NANO, STEPS)


def test_choices_are_named_by_field_and_open_from_the_largest() -> None:
    assert list(choices_of(SPACE.root).items()) == [("width", 3), ("length", 4), ("heads", 3), ("ratio", 3)]
    assert opened(SPACE.root, {}).count() == 1
    assert opened(SPACE.root, {"length": 2}).count() == 2
    assert opened(SPACE.root, choices_of(SPACE.root)).count() == SPACE.count()


def walked(rule: Walk, steps: Iterable[int], seed: int = 0) -> list[Any]:
    """Give the designs, not their cards, of some steps of a walk."""
    seen: list[Any] = []
    space = replace(SPACE, build=lambda design: seen.append(design) or SPACE.build(design))
    draw = rule.bind(Hull(space, NANO.largest, NANO.smallest), STEPS, seed)
    for step in steps:
        draw(derive(0), step)
    return seen


def test_a_walk_changes_one_choice_a_step_and_begins_anew() -> None:
    designs = walked(Walk(10), range(40))
    for step, (one, other) in enumerate(pairwise(designs), start=1):
        before, after = ({gene.path: gene.value for gene in SPACE.genes(design)} for design in (one, other))
        kept = before.keys() & after.keys()
        changed = [path for path in kept if before[path] != after[path]]
        if step % 10:
            assert len(changed) == 1  # of the choices that both have: layers may come and go with the depth
    assert len({SPACE.card(design).digest for design in designs[::10]}) > 1


def test_the_seed_of_a_walk_decides_where_it_starts_and_every_move() -> None:
    expected = [SPACE.sample(derive(5, "walk", 0), "gene")]
    for step in range(1, 6):
        expected.append(SPACE.mutate(expected[-1], derive(5, "walk", step)))
    assert walked(Walk(10), range(6), seed=5) == expected


def test_any_step_of_a_walk_is_known_without_those_before() -> None:
    whole = walked(Walk(10), range(40))
    for step in (37, 12, 13, 5, 30):
        assert walked(Walk(10), [step]) == [whole[step]]
    assert walked(Walk(10), [13, 5, 12, 13]) == [whole[13], whole[5], whole[12], whole[13]]
    assert walked(Walk(10), range(40), seed=1) != whole


def test_phases_give_each_rule_its_share_and_its_own_steps() -> None:
    rule = Phases((Largest(), Uniform(3), Sandwich(0)), (1, 2, 1))
    numbers = [len(drawn(rule, step)) for step in range(STEPS)]
    assert numbers == [1] * 25 + [3] * 50 + [2] * 25
    assert len(drawn(rule, STEPS + 5)) == 2  # a training that was extended
    shrinking = Phases((Largest(), ProgressiveShrinking(largest=0.5)), (0.5, 0.5))
    assert drawn(shrinking, 70) == [NANO.largest]
    assert len(drawn(shrinking, 99)) == 2
    assert rule.work(0.5, 0.1) == pytest.approx((1 + 2 * 1.5 + 1.1) / 4)


def test_rules_of_phases_have_the_seed_of_the_training() -> None:
    own, whole = (rule.bind(NANO, STEPS, 5) for rule in (Walk(), Phases((Largest(), Walk()))))
    assert [whole(derive(0), 50 + step) for step in range(5)] == [own(derive(0), step) for step in range(5)]


def test_the_work_of_a_step_is_that_of_the_rows_and_designs_that_it_trains() -> None:
    """A random design takes half of what the largest one takes, and the smallest a tenth."""
    rules = [Largest(), Uniform(3), Uniform(3, rows="apart"), Sandwich(2), Walk(), ProgressiveShrinking(0.2, designs=3)]
    assert [rule.work(0.5, 0.1) for rule in rules] == pytest.approx([1, 1.5, 0.5, 2.1, 0.5, 0.2 + 0.8 * 3 * 0.75])


def test_phases_train_the_largest_first_where_all_their_rules_do() -> None:
    assert Phases((Largest(), Sandwich())).LARGEST_FIRST
    assert not Phases((Largest(), Uniform())).LARGEST_FIRST


@pytest.mark.parametrize(
    ("rules", "shares"),
    [
        ((), ()),
        ((Largest(),), (0.5, 0.5)),
        ((Largest(), Walk()), (1.0, 0.0)),
        ((Largest(), Walk()), (nan, 0.5)),
        ((Largest(), Walk()), (0.5, nan)),
        ((Largest(), Walk()), (0.5, inf)),
    ],
)
def test_phases_without_shares_are_refused(rules: tuple[Rule, ...], shares: tuple[float, ...]) -> None:
    with pytest.raises(IllegalInput, match="share"):
        Phases(rules, shares)


def test_designs_may_be_shown_rows_of_their_own() -> None:
    assert isinstance(drawn(Uniform(3, rows="apart"), 0), SplitBatch)
    assert not isinstance(drawn(Uniform(3), 0), SplitBatch)
    assert list(drawn(Uniform(3, rows="apart"), 0)) == drawn(Uniform(3), 0)


def test_shrinking_draws_only_designs_that_have_weights() -> None:
    narrow = NANO.space.restrict("narrow", lambda card: False)
    lasting = NANO.space.restrict("has weights", lambda card: True, lasting=True)
    phases = ProgressiveShrinking().phases(replace(narrow, where=(*narrow.where, *lasting.where)))
    assert all(phase.where == lasting.where for _, phase in phases[:-1])


def test_kinds_are_open_from_the_beginning_of_a_shrinking() -> None:
    mixed = load_space("flexibert-nano")
    hull = find_hull(mixed)
    rule = ProgressiveShrinking(largest=0.3, designs=4)
    first = [card for step in range(25) for card in drawn(rule, step, hull=hull)]
    assert {layer.width for card in first for layer in card.stacks[0].layers} == {64}
    assert len({layer.mixer.TYPE for card in first for layer in card.stacks[0].layers}) > 1
