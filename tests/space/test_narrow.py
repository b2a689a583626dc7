from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from formwright.core.errors import Fault, IllegalInput, UnknownName
from formwright.space import (
    Case,
    Choice,
    Combinator,
    Expressions,
    Fields,
    Record,
    Repeat,
    Row,
    Space,
    Switch,
    Within,
    lists_of,
    mutate,
    narrowed,
)
from formwright.space.design import Line
from formwright.space.narrow import ListOf
from formwright.space.zoo import SPACES, load_space

MIXER = Switch.of(attention=Choice((2, 4)), convolution=Choice((3, 5)), identity=Record.of())
WHOLE = Repeat(Record.of(mixer=MIXER, width=Choice((16, 32, 64))), (1, 2, 4))
NARROW = Record.of(mixer=Switch.of(attention=Choice((4,)), identity=Record.of()), width=Choice((32, 64)))
PART = Within(WHOLE, Row((NARROW, NARROW), (2, 4), tied=2))
SEEDS = st.integers(0, 2**32 - 1)
PROPERTY = settings(max_examples=60, deadline=None)
FINE = load_space("flexibert-nano-s1star")
PAIRS = {"layers": 2, "layers.feed_forward": 3}
EQUAL_STACKS = {"layers.feed_forward": 3}


def member(mixer: Case, width: int) -> Fields:
    return Fields.of(mixer=mixer, width=width)


ATTENTION, IDENTITY = Case("attention", 4), Case("identity", Fields.of())


@PROPERTY
@given(SEEDS)
def test_values_are_written_and_encoded_as_those_of_the_whole(seed: int) -> None:
    value, faults = PART.sample(default_rng(seed)), list[Fault]()
    assert np.array_equal(PART.encode(value), WHOLE.encode(value))
    assert PART.decode(PART.encode(value)) == value
    assert PART.to_json(value) == WHOLE.to_json(value)
    assert (PART.from_json(PART.to_json(value), (), faults), faults) == (value, [])


@PROPERTY
@given(SEEDS)
def test_moves_from_any_value_of_the_whole_lead_into_the_part(seed: int) -> None:
    rng = default_rng(seed)
    first, second = WHOLE.sample(rng, "gene"), WHOLE.sample(rng, "gene")
    assert PART.contains(mutate(PART, first, rng))
    assert PART.contains(PART.crossover(first, second, rng))
    assert PART.contains(PART.decode(WHOLE.encode(first)))


def test_a_narrow_part_has_values_of_the_part() -> None:
    assert PART.count() == 4 + 16
    assert all(WHOLE.contains(value) and PART.contains(value) for value in PART.enumerate())
    assert not PART.contains((member(ATTENTION, 32),))
    faults: list[Fault] = []
    PART.from_json(WHOLE.to_json((member(ATTENTION, 32),)), ("layers",), faults)
    assert [fault.where for fault in faults] == ["layers"]
    value: Any = (member(ATTENTION, 64), member(Case("convolution", 3), 32))
    first = member(ATTENTION, 64)
    assert PART.part.nearest(value) == (first, first)
    value = (member(IDENTITY, 16), member(ATTENTION, 64), member(Case("convolution", 5), 64), member(IDENTITY, 16))
    begin, end = member(IDENTITY, 32), member(ATTENTION, 64)
    assert PART.part.nearest(value) == (begin, begin, end, end)
    longer = Within(WHOLE, Row((NARROW, NARROW), (2,)))
    assert longer.part.nearest((member(IDENTITY, 64),)) == (member(IDENTITY, 64),) * 2
    assert Row((Choice((1, 2)),), (1,)).nearest(()) == (1,)


def layer(operation: str, option: Any, heads: int, hidden: int, stack: tuple[int, ...]) -> Fields:
    return Fields.of(operation=Case(operation, option), heads=heads, hidden=hidden, feed_forward=stack)


FIRST = layer("sa", "sdp", 2, 32, (64,))


SECOND = layer("dsc", 5, 2, 64, (64, 64, 64))


THIRD = layer("sa", "wma", 4, 32, (128, 128, 128))


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


def test_the_space_is_the_product_of_the_choices_at_the_same_depth() -> None:
    parents = [Fields.of(layers=(FIRST, FIRST, SECOND, SECOND)), Fields.of(layers=(THIRD, THIRD))]
    space = narrowed(FINE, "children", EQUAL_STACKS, parents)
    # a first or second layer: sdp or wma, 2 or 4 heads, 32 wide, 1 or 3 stacked layers of 64 or of 128
    early = 2 * 2 * 1 * (2 * 2)
    assert space.count() == early**2 + early**2  # third and fourth layers can only be those of the only deep parent
    assert all(map(space.contains, parents))
    assert space.contains(Fields.of(layers=(layer("sa", "wma", 2, 32, (64, 64, 64)), FIRST)))
    assert not space.contains(Fields.of(layers=(SECOND, FIRST)))


def test_lists_are_named_and_taken_at_any_place() -> None:
    assert list(lists_of(FINE.root)) == [ListOf("layers", 0, 4), ListOf("layers.feed_forward", 1, 3)]
    assert list(lists_of(load_space("flexibert-nano").root)) == [ListOf("layers", 0, 2)]
    assert narrowed(FINE, "same", {}).count() == FINE.count()
    parents = [Fields.of(layers=(FIRST, FIRST)), Fields.of(layers=(THIRD, THIRD))]
    space = narrowed(FINE, "children", {}, parents)
    assert space.contains(Fields.of(layers=(layer("sa", "sdp", 2, 32, (128, 64, 128)), FIRST)))
    assert space.count() == (2 * 2 * 1 * (2 + 8)) ** 2


def test_constraints_and_cards_stay() -> None:
    shallow = FINE.restrict("shallow", lambda card: len(card.stacks[0].layers) == 2)
    space = narrowed(shallow, "children", PAIRS)
    assert space.count() == 96
    design = space.sample(default_rng(0))
    assert space.card(design) == FINE.card(design)
    assert space.name == "children"


def test_formulas_stay_free_and_impossible_ties_are_refused() -> None:
    space = Space("formulas", Record.of(layers=Repeat(Expressions(2), 2)), lambda design: design)
    design = space.sample(default_rng(0))
    assert narrowed(space, "children", {}, [design]).count() == space.count()
    assert narrowed(space, "children", {"layers": 2}, [design]).count() == Expressions(2).count()
    with pytest.raises(UnknownName, match=r"'layer'.*'layers'"):
        narrowed(FINE, "wrong", {"layer": 2})
    with pytest.raises(IllegalInput, match="a group of layers has at least one entry, not 0"):
        narrowed(FINE, "wrong", {"layers": 0})


def lines(part: Combinator[Any]) -> list[Line]:
    return list(part.outline())


def test_choices_and_records_are_outlined() -> None:
    assert lines(Choice((2, "four", None))) == [Line("", (2, "four", None))]
    part = Record.of(size=Record.of(heads=Choice((2, 4)), width=Choice((8,))), depth=Choice((1, 2)))
    assert lines(part) == [Line("size.heads", (2, 4)), Line("size.width", (8,)), Line("depth", (1, 2))]
    assert lines(Record.of()) == []


def test_a_switch_lists_its_cases_and_then_what_each_brings() -> None:
    part = Record.of(
        mixer=Switch.of(sa=Choice(("sdp", "wma")), conv=Record.of(kernel=Choice((3, 5))), none=Record.of())
    )
    assert lines(part) == [
        Line("mixer", ("sa", "conv", "none")),
        Line("mixer=sa", ("sdp", "wma")),
        Line("mixer=conv.kernel", (3, 5)),
    ]


@pytest.mark.parametrize("times", [4, (2, 4)])
def test_tied_members_are_numbered_by_group(times: int | tuple[int, ...]) -> None:
    lengths = (times,) if isinstance(times, int) else times
    assert lines(Record.of(layers=Repeat(Choice((2, 4)), times, tied=2))) == [
        Line("layers.length", lengths, "in groups of 2 that share a choice"),
        Line("layers[0..1]", (2, 4)),
    ]


def test_repetitions_are_outlined() -> None:
    assert lines(Record.of(layers=Repeat(Choice((2, 4)), 6))) == [Line("layers[0..5]", (2, 4))]
    part = Record.of(layers=Repeat(Choice((2, 4)), (1, 3)))
    assert lines(part) == [Line("layers.length", (1, 3)), Line("layers[0..2]", (2, 4))]
    assert lines(Repeat(Choice((2, 4)), 0)) == []


def test_formulas_and_rows_are_counted() -> None:
    part = Expressions(3, least_inputs=1, most_inputs=2)
    (line,) = lines(Record.of(formula=part))
    assert (line.where, line.options) == ("formula", ())
    assert line.remark == f"{part.count():,} formulas of up to 3 operations over 1 to 2 inputs"
    row = Row((Choice((1, 2)),) * 12, (12,))
    assert lines(Record.of(row=row)) == [Line("row", (), "4,096 values")]


def test_the_published_space_reads_like_its_table() -> None:
    assert [(line.where, line.options) for line in load_space("flexibert").root.outline()] == [
        ("layers.length", (2, 4)),
        ("layers[0..1].operation", ("sa", "lt", "dsc")),
        ("layers[0..1].operation=sa", ("sdp", "wma")),
        ("layers[0..1].operation=lt", ("dft", "dct")),
        ("layers[0..1].operation=dsc", (5, 9)),
        ("layers[0..1].heads", (2, 4)),
        ("layers[0..1].hidden", (128, 256)),
        ("layers[0..1].feed_forward.width", (512, 1024)),
        ("layers[0..1].feed_forward.depth", (1, 3)),
    ]


@pytest.mark.parametrize("name", SPACES.names())
def test_every_published_space_has_an_outline(name: str) -> None:
    found = list(load_space(name).root.outline())
    assert found
    assert len({line.where for line in found}) == len(found)
    assert all(line.options or line.remark for line in found)
