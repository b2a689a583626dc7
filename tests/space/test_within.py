from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from formwright.core.errors import Fault
from formwright.space import Case, Choice, Fields, Record, Repeat, Row, Switch, Within, mutate
from formwright.space.within import brought_into

MIXER = Switch.of(attention=Choice((2, 4)), convolution=Choice((3, 5)), identity=Record.of())
WHOLE = Repeat(Record.of(mixer=MIXER, width=Choice((16, 32, 64))), (1, 2, 4))
NARROW = Record.of(mixer=Switch.of(attention=Choice((4,)), identity=Record.of()), width=Choice((32, 64)))
PART = Within(WHOLE, Row((NARROW, NARROW), (2, 4), tied=2))
SEEDS = st.integers(0, 2**32 - 1)
PROPERTY = settings(max_examples=60, deadline=None)


def member(mixer: Case, width: int) -> Fields:
    return Fields.of(mixer=mixer, width=width)


ATTENTION, IDENTITY = Case("attention", 4), Case("identity", Fields.of())


def test_it_has_the_values_of_the_part() -> None:
    assert PART.count() == 4 + 16
    assert all(WHOLE.contains(value) and PART.contains(value) for value in PART.enumerate())
    assert not PART.contains((member(ATTENTION, 32),))


@PROPERTY
@given(SEEDS)
def test_values_are_written_and_encoded_as_those_of_the_whole(seed: int) -> None:
    value, faults = PART.sample(default_rng(seed)), list[Fault]()
    assert np.array_equal(PART.encode(value), WHOLE.encode(value))
    assert PART.decode(PART.encode(value)) == value
    assert PART.to_json(value) == WHOLE.to_json(value)
    assert PART.from_json(PART.to_json(value), (), faults) == value
    assert faults == []


@PROPERTY
@given(SEEDS)
def test_moves_from_any_value_of_the_whole_lead_into_the_part(seed: int) -> None:
    rng = default_rng(seed)
    first, second = WHOLE.sample(rng, "gene"), WHOLE.sample(rng, "gene")
    assert PART.contains(mutate(PART, first, rng))
    assert PART.contains(PART.crossover(first, second, rng))
    assert PART.contains(PART.decode(WHOLE.encode(first)))


def test_json_from_outside_is_refused() -> None:
    faults: list[Fault] = []
    PART.from_json(WHOLE.to_json((member(ATTENTION, 32),)), ("layers",), faults)
    assert faults == [Fault("layers", "is outside the part of the space that is searched")]


def test_what_the_part_has_stays_as_it_is() -> None:
    value: Any = (member(ATTENTION, 64), member(Case("convolution", 3), 32))
    first = member(ATTENTION, 64)
    assert brought_into(PART.part, value) == (first, first)
    value = (member(IDENTITY, 16), member(ATTENTION, 64), member(Case("convolution", 5), 64), member(IDENTITY, 16))
    begin, end = member(IDENTITY, 32), member(ATTENTION, 64)
    assert brought_into(PART.part, value) == (begin, begin, end, end)


def test_members_that_are_missing_are_like_the_last() -> None:
    longer = Within(WHOLE, Row((NARROW, NARROW), (2,)))
    assert brought_into(longer.part, (member(IDENTITY, 64),)) == (member(IDENTITY, 64),) * 2
    assert brought_into(Row((Choice((1, 2)),), (1,)), ()) == (1,)
