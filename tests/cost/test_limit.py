import pytest
from numpy.random import default_rng

from formwright.core.errors import IllegalDesign, IllegalInput, UnknownName
from formwright.cost import limit, macs, params
from formwright.space.zoo import load_card, load_space

FLEXIBERT = load_space("flexibert")


def test_a_limit_is_a_name_and_a_test_of_cards() -> None:
    name, holds = limit("params<=5e6")
    assert name == "params<=5e6"
    assert holds(load_card("bert-tiny"))
    assert not holds(load_card("bert-mini"))


@pytest.mark.parametrize(("shift", "held"), [(-1, False), (0, True), (1, True)])
def test_the_limit_itself_is_allowed(shift: int, held: bool) -> None:
    card = load_card("bert-base")
    assert limit(f"params<={params(card) + shift}")[1](card) is held
    assert limit(f"params>={params(card) - shift}")[1](card) is held


def test_operations_are_counted_at_the_length_asked_for() -> None:
    card = load_card("bert-base")
    bound = f"macs<={macs(card, 64)}"
    assert limit(bound, length=64)[1](card)
    assert not limit(bound)[1](card)
    assert limit(f"macs<={macs(card, 128)}")[1](card)


@pytest.mark.parametrize("text", ["params:min", "macs:max"])
def test_a_goal_is_no_limit(text: str) -> None:
    with pytest.raises(IllegalInput, match=f"'{text}'"):
        limit(text)


@pytest.mark.parametrize("text", ["params", "params<5", "params<=many", "params<=inf", ""])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(IllegalInput):
        limit(text)


def test_an_unknown_cost_is_named_at_once() -> None:
    with pytest.raises(UnknownName, match=r"'parameters'. Nearest: 'params"):
        limit("parameters<=5e6")


def test_every_operator_of_a_restricted_space_obeys_the_limit() -> None:
    space = FLEXIBERT.restrict(*limit("params<=1e7"))
    rng = default_rng(0)
    designs = [space.sample(rng) for _ in range(50)]
    children = [space.mutate(design, rng) for design in designs]
    crossed = [space.crossover(*pair, rng) for pair in zip(designs, children, strict=True)]
    near = list(space.neighbours(designs[0]))
    for design in [*designs, *children, *crossed, *near]:
        assert params(space.card(design)) <= 10_000_000
        assert space.contains(design)


def test_limits_add_up_and_count() -> None:
    small = FLEXIBERT.restrict(*limit("params<=1e7"))
    smaller = small.restrict(*limit("macs<=2e8"))
    costs = [(params(card), macs(card)) for card in map(FLEXIBERT.card, FLEXIBERT.enumerate())]
    assert small.count() == sum(size <= 1e7 for size, _ in costs) > 0
    assert smaller.count() == sum(size <= 1e7 and work <= 2e8 for size, work in costs) > 0
    assert smaller.count() < small.count() < FLEXIBERT.count()


def test_an_impossible_limit_is_named_with_the_tries() -> None:
    space = FLEXIBERT.restrict(*limit("params<=1e3"))
    with pytest.raises(
        IllegalInput, match=r"no allowed design of space 'flexibert' in 1000 tries.*params<=1e3 \(1000 tim"
    ):
        space.sample(default_rng(0))
    assert space.count() == 0


def test_a_design_beyond_the_limit_is_refused_by_name() -> None:
    space = FLEXIBERT.restrict(*limit("params<=1e3"))
    design = FLEXIBERT.sample(default_rng(0))
    assert not space.contains(design)
    with pytest.raises(IllegalDesign, match="breaks the constraint params<=1e3"):
        space.from_json(FLEXIBERT.to_json(design))
