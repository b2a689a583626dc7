from typing import Any

import pytest
from numpy.random import default_rng

from formwright.core.errors import Fault, IllegalInput
from formwright.space import Choice, Repeat, Row, mutate, neighbours

# two groups of two; the second is shorter in a row of three
PART = Row((Choice((1, 2)), Choice((2, 3, 4))), lengths=(2, 3, 4), tied=2)


def test_the_length_is_a_gene_counted_in_members_where_there_is_a_choice() -> None:
    part = Repeat(Choice((1, 2)), times=(2, 4), tied=2)
    assert [(gene.name, gene.value, gene.options) for gene in part.genes((1, 2), ("layers",))] == [
        ("layers", 4, (2, 4)),
        ("layers[0]", 1, (1, 2)),
        ("layers[1]", 2, (1, 2)),
    ]
    assert [gene.name for gene in Repeat(Choice((1, 2)), times=2).genes((1, 2))] == ["[0]", "[1]"]


def test_repetitions_add_the_powers_of_their_lengths() -> None:
    assert Repeat(Choice((1, 2, 3)), times=2).count() == 9
    assert Repeat(Choice((1, 2, 3)), times=(0, 2, 4)).count() == 1 + 9 + 81
    assert Repeat(Choice((1, 2, 3)), times=(2, 4), tied=2).count() == 3 + 9
    part = Repeat(Choice((1, 2)), times=(2, 4), tied=2)
    assert list(part.enumerate()) == [(1,), (2,), (1, 1), (1, 2), (2, 1), (2, 2)]
    assert part.contains((1,))
    assert not part.contains((1, 1, 1))
    assert not part.contains([1])
    part = Repeat(Choice((1, 2)), times=(1, 2))
    assert part.encode((2,)).tolist() == [1, 0, 0, 1, 0, 0]
    assert part.encode((2, 1)).tolist() == [0, 1, 0, 1, 1, 0]
    assert Repeat(Choice((1, 2)), times=2).encode((2, 1)).tolist() == [0, 1, 1, 0]
    part = Repeat(Choice((1, 2, 3)), times=(1, 3))
    rng = default_rng(0)
    assert {part.crossover((1,), (2, 3, 3), rng) for _ in range(100)} == {(1,), (2,), (1, 3, 3), (2, 3, 3)}


@pytest.mark.parametrize(
    ("times", "tied", "message"),
    [
        ((2, 3), 2, "length 3 is not a multiple of the group size 2"),
        ((), 1, "at least one"),
        ((2, 2), 1, "distinct"),
        (-1, 1, "not negative"),
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


def test_rows_have_groups_of_equal_members() -> None:
    assert (PART.count(), Row((), (0,)).count()) == (2 + 2 * 3 + 2 * 3, 1)
    assert list(PART.enumerate())[:4] == [(1, 1), (2, 2), (1, 1, 2), (1, 1, 3)]
    assert PART.contains((1, 1, 3, 3))
    assert not PART.contains((1, 1, 3, 4))
    assert not PART.contains((3, 3))  # a value of the other part
    assert not PART.contains((1,))
    assert not PART.contains([1, 1])
    assert [(gene.name, gene.value, gene.options) for gene in PART.genes((1, 1, 3), ("layers",))] == [
        ("layers", 3, (2, 3, 4)),
        ("layers[0]", 1, (1, 2)),
        ("layers[2]", 3, (2, 3, 4)),
    ]


def test_children_of_rows() -> None:
    children = {mutate(PART, (1, 1, 3, 3), default_rng(seed)) for seed in range(200)}
    assert children == {(1, 1), (1, 1, 3), (2, 2, 3, 3), (1, 1, 2, 2), (1, 1, 4, 4)}
    assert next(neighbours(PART, (2, 2))) == (2, 2, 2)
    assert next(neighbours(PART, (1, 1))) == (1, 1, 2)
    rng = default_rng(0)
    children = {PART.crossover((1, 1), (2, 2, 4, 4), rng) for _ in range(100)}
    assert children == {(1, 1), (2, 2), (1, 1, 4, 4), (2, 2, 4, 4)}


def test_faults_of_json_are_told_with_their_place() -> None:
    def faults(data: Any) -> list[Fault]:
        found: list[Fault] = []
        PART.from_json(data, ("layers",), found)
        return found

    assert faults([1, 1, 3, 3]) == []
    assert faults([1, 2]) == [Fault("layers", "has entries that differ within a group of 2")]
    assert faults([1]) == [Fault("layers", "has 1 entries; allowed: 2, 3, 4")]
    assert faults(None) == [Fault("layers", "is None; expected a list")]
    assert [fault.where for fault in faults([1, 1, 9, 9])] == ["layers[2]", "layers[3]"]


@pytest.mark.parametrize(
    ("parts", "lengths", "tied", "message"),
    [
        (1, (2,), 1, "2 members in groups of 1 need 2 parts, not 1"),
        (3, (4,), 2, "4 members in groups of 2 need 2 parts, not 3"),
        (0, (), 1, "at least one"),
        (2, (2, 2), 1, "distinct"),
        (2, (-1, 2), 1, "not negative"),
        (2, (2,), 0, "at least one member"),
    ],
)
def test_impossible_rows_are_refused(parts: int, lengths: tuple[int, ...], tied: int, message: str) -> None:
    with pytest.raises(IllegalInput, match=message):
        Row((Choice((1, 2)),) * parts, lengths, tied)
