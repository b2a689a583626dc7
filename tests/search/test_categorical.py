from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.search.categorical import Slot, compose, decompose, slots
from formwright.space import Choice, Expressions, Record, Repeat, Space, Switch
from formwright.space.narrow import Within
from formwright.space.repeat import Row
from formwright.space.zoo import load_card, load_space
from formwright.testing.toy_problem import large, small, tiny, twins

WHOLE = Repeat(Choice((1, 2, 3)), (2, 4))
NARROW = Within(WHOLE, Row((Choice((1, 2)), Choice((2, 3))), (2, 4), tied=2))
ROWS = Space("rows", Record.of(layers=NARROW), lambda design: load_card("bert-tiny"))
SPACES = [tiny(), small(), large(), twins(), load_space("flexibert-nano"), load_space("hat"), ROWS]


@given(st.sampled_from(SPACES), st.integers(0, 1000))
def test_a_design_is_rebuilt_from_its_slots_and_any_options_make_one(space: Space, seed: int) -> None:
    design = space.sample(derive(seed), "gene")
    taken = dict(decompose(space.root, design))
    assert compose(space.root, taken.__getitem__) == design
    listed = list(slots(space.root))
    assert taken.keys() <= set(listed)
    assert len({slot.name for slot in listed}) == len(listed)
    assert all(0 <= option < slot.options for slot, option in taken.items())
    rng = derive(seed)
    assert space.root.contains(compose(space.root, lambda slot: int(rng.integers(slot.options))))


def test_slots_say_where_they_are_and_whether_neighbours_are_alike() -> None:
    member: Any = Switch.of(a=Choice((1, 2, 4)), b=Choice(("x", "y")), c=Choice((3,)), d=Choice((True, False, None)))
    root = Record.of(layers=Repeat(member, (2, 4, 6), tied=2), width=Choice((64, 32, 16)))
    names = [
        (slot.name, slot.options, slot.ordered)
        for slot in slots(root)
        if "[1]" not in slot.name and "[2]" not in slot.name
    ]
    assert names == [
        (".layers.length", 3, True), (".layers[0]", 4, False), (".layers[0]=a", 3, True), (".layers[0]=b", 2, False),
        (".layers[0]=d", 3, False), (".width", 3, True),
    ]  # fmt: skip
    assert Slot(".layers[2]=a", 3, True) in set(slots(root))


def test_a_value_outside_a_narrow_part_is_read_as_the_nearest_inside() -> None:
    assert [option for _, option in decompose(NARROW, (3, 1, 3, 2))] == [1, 0, 1]
    assert [option for _, option in decompose(NARROW, (2, 2, 3, 3))] == [1, 1, 1]


def test_op_graphs_have_no_slots() -> None:
    with pytest.raises(IllegalInput, match=r"cannot search Expressions \(cell\).*regularized-evolution"):
        list(slots(Record.of(cell=Expressions(2))))
