from typing import Any

import pytest
from numpy.random import default_rng

from formwright.core.errors import Fault, IllegalInput
from formwright.space import Choice, Repeat


def test_every_length_adds_its_power() -> None:
    assert Repeat(Choice((1, 2, 3)), times=2).count() == 9
    assert Repeat(Choice((1, 2, 3)), times=(0, 2, 4)).count() == 1 + 9 + 81
    assert Repeat(Choice((1, 2, 3)), times=(2, 4), tied=2).count() == 3 + 9


def test_tied_members_are_stored_once() -> None:
    part = Repeat(Choice((1, 2)), times=(2, 4), tied=2)
    assert list(part.enumerate()) == [(1,), (2,), (1, 1), (1, 2), (2, 1), (2, 2)]
    assert part.members((1, 2)) == (1, 1, 2, 2)
    assert part.contains((1,))
    assert not part.contains((1, 1, 1))
    assert not part.contains([1])


def test_the_length_is_a_gene_counted_in_members_where_there_is_a_choice() -> None:
    part = Repeat(Choice((1, 2)), times=(2, 4), tied=2)
    assert [(gene.name, gene.value, gene.options) for gene in part.genes((1, 2), ("layers",))] == [
        ("layers", 4, (2, 4)),
        ("layers[0]", 1, (1, 2)),
        ("layers[1]", 2, (1, 2)),
    ]
    assert [gene.name for gene in Repeat(Choice((1, 2)), times=2).genes((1, 2))] == ["[0]", "[1]"]


def test_absent_members_encode_as_zeros() -> None:
    part = Repeat(Choice((1, 2)), times=(1, 2))
    assert part.encode((2,)).tolist() == [1, 0, 0, 1, 0, 0]
    assert part.encode((2, 1)).tolist() == [0, 1, 0, 1, 1, 0]
    assert Repeat(Choice((1, 2)), times=2).encode((2, 1)).tolist() == [0, 1, 1, 0]


def test_a_child_has_the_length_of_a_parent_and_takes_the_tail_from_the_longer() -> None:
    part = Repeat(Choice((1, 2, 3)), times=(1, 3))
    rng = default_rng(0)
    children = {part.crossover((1,), (2, 3, 3), rng) for _ in range(100)}
    assert children == {(1,), (2,), (1, 3, 3), (2, 3, 3)}


@pytest.mark.parametrize(
    ("times", "tied", "message"),
    [
        ((2, 3), 2, "length 3 is not a multiple of the group size 2"),
        ((), 1, "at least one"),
        ((2, 2), 1, "distinct"),
        (-1, 1, "length -1"),
        (2, 0, "at least one member"),
    ],
)
def test_impossible_lengths_are_refused(times: Any, tied: int, message: str) -> None:
    with pytest.raises(IllegalInput, match=message):
        Repeat(Choice((1,)), times, tied)


def test_all_faults_of_json_are_listed() -> None:
    part, faults = Repeat(Choice((1, 2)), times=(2, 4), tied=2), list[Fault]()
    part.from_json([3, 1, 4], ("layers",), faults)
    assert faults == [
        Fault("layers", "has 3 entries; allowed: 1, 2"),
        Fault("layers[0]", "is 3; allowed: 1, 2"),
        Fault("layers[2]", "is 4; allowed: 1, 2"),
    ]
    faults.clear()
    part.from_json({}, ("layers",), faults)
    assert faults == [Fault("layers", "is {}; expected a list")]
